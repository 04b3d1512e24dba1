# shellcheck shell=bash
# a group is drained: its job ends well, its pod after it, and none is made
# until it is given back; then it is killed, and the job runs again
#
# Needs: no pods.
# Leaves: nothing.

provision() {
    in_system exec "$(leader)" -- provisioner "$@" --lease glidepod-provisioner
}

reason_in() { env_kubectl get pod "$1" -o jsonpath='{.metadata.annotations.glidepod\.io/drained}'; }  # POD
has_reason() { [[ $(reason_in "$1") == "$2" ]]; }
pilot_says() { env_kubectl logs "$1" --container pilot | grep -F -- "$2" >/dev/null; }  # POD WORDS
has_event() { env_kubectl describe pod "$1" | grep -E -- "$2" >/dev/null; }  # POD PATTERN
waits_idle() { env_in_pool condor_q "$1" -allusers -af JobStatus | grep -x 1 >/dev/null; }

look_shows() {  # POD GROUP
    local shown
    shown=$(provision drain --group "$2" --reason "new disks") || return
    contains "$shown" "$1" && contains "$shown" "group $2: 1 pods, 1 jobs run in them" &&
        contains "$shown" "Nothing is changed so far: --yes does it."
}

test_drain() {
    local job late pod group
    job=$(small_job alice busybox:1 "sleep 80; cat /etc/image-name")
    check "a job runs" wait_until 120 "that" runs_now "$job"
    # One that waits beside it would end by itself.
    check "in the only pod" wait_until 120 "that" pilots_are 1
    pod=$(pilots -o jsonpath='{.items[0].metadata.name}')
    group=$(pilots -o jsonpath='{.items[0].metadata.labels.glidepod\.io/group}')
    check "a look shows pod and job" wait_until 30 "that" look_shows "$pod" "$group"
    check "  and changes nothing" equal "$(provision drain --list) $(reason_in "$pod")" "nothing is drained "
    check "its group is drained" provision drain --group "$group" --reason "new disks" --yes
    check "  as the list says" contains "$(provision drain --list)" "new disks"
    check "the pod has the reason" wait_until 30 "that" has_reason "$pod" "new disks"
    check "  in an event, too" wait_until 30 "that" has_event "$pod" "Drained .*new disks"
    check "  and its pilot hears of it" wait_until 90 "that" pilot_says "$pod" 'event=drained reason="new disks"'
    check "  while its job runs on" runs_now "$job"
    late=$(small_job bob busybox:1 "cat /etc/image-name")
    check "of a later one of its size why tells it" wait_until 60 "that" why_is "$late.0" 5 drained "new disks"
    check "  as does the status" status_says "group $group: drained since .*: new disks"
    check "the job ends" finished alice "$job" 180
    check "  well" equal "$(output_of alice "$job")" demo/busybox:1
    check "  where it had begun" equal "$(history_of "$job" NumJobStarts ExitCode)" "0 1 0"
    check "its pod ends after it" wait_until 90 "that" no_pilots
    sleep 15
    check "no other is made" no_pilots
    check "and the later job waits" waits_idle "$late"
    check "the group is given back" provision undrain --group "$group" --yes
    check "  and the later job ends" finished bob "$late" 180
    check "the pods end" wait_until 180 "that" no_pilots

    job=$(small_job alice busybox:1 "sleep 50; cat /etc/image-name")
    check "another job runs" wait_until 120 "that" runs_now "$job"
    pod=$(pilots -o jsonpath='{.items[0].metadata.name}')
    check "its group is killed" provision kill --group "$group" --reason "fire in the hall" --yes
    check "its pod is asked to go" wait_until 60 "that" leaves "pod/$pod"
    check "  and says why" has_reason "$pod" "fire in the hall"
    check "the job is idle again" wait_until 120 "that" waits_idle "$job"
    check "the pods are gone" wait_until 180 "that" no_pilots
    check "the group is given back again" provision undrain --group "$group" --yes
    check "and the job runs once more, to its end" finished alice "$job" 240
    check "  as its second start" equal "$(history_of "$job" NumJobStarts ExitCode)" "0 2 0"
    check "nothing is drained any more" equal "$(provision drain --list)" "nothing is drained"
    check "pods end" wait_until 180 "the end of the pods" no_pilots
}
