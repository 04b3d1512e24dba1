# shellcheck shell=bash
# images new to the node are pulled beside the pods: a neighbour's switch
# does not wait; one that does not exist; the provisioner stopped
#
# Needs: no jobs; a node of its own, whose registry it stops; which lacks the images busybox:2, none:1 and run:1.
# Leaves: two other instances.

pullers() { env_kubectl get pods -l app.kubernetes.io/name=glidepod-puller -o name; }
is_puller() { [[ -n $(pullers) ]]; }
no_puller() { [[ -z $(pullers) ]]; }

# As a drain does it.
evict() {  # pod/NAME
    env_kubectl get --raw /apis/policy | jq --arg name "${1#pod/}" '{apiVersion: .preferredVersion.groupVersion, kind: "Eviction", metadata: {name: $name}}' |
        env_kubectl create --raw "/api/v1/namespaces/$env_namespace/pods/${1#pod/}/eviction" -f - >/dev/null
}

no_provisioners() { [[ -z $(provisioners) ]]; }

test_pullers() {
    local used first new known nope
    used=$(read_count used)
    configure "pullers=yes" "[glidepod]" "cpu_buckets=2"
    check "pullers are switched on" wait_until 120 "that" settings_were used $((used + 1))
    record_logs &
    logger=$!
    first=$(small_job alice busybox:1 "sleep 20")
    check "a job's image, of which its pilot knows nothing, is pulled by a puller" wait_until 120 "a start" runs_now "$first"
    check "as the pilot's log tells" wait_until 120 "that" a_pilot_says "event=pull image=.*/busybox:1.* by=ready"
    # As slow as can be: the registry does not answer.
    env_node_kill registry STOP
    new=$(small_job bob busybox:2 "cat /etc/image-name")
    check "one with a new image has a puller" wait_until 120 "a puller" is_puller
    finished alice "$first" 60
    known=$(small_job bob busybox:1 "cat /etc/image-name")
    check "the neighbour's switch does not wait for the pull" finished bob "$known" 60
    check "which is still under way" not_started bob "$new"
    env_node_kill registry CONT
    check "and goes on when the image is there" finished bob "$new" 180
    check "it has started only then" has_started bob "$new"
    check "both in their images" equal "$(output_of bob "$known") $(output_of bob "$new")" "demo/busybox:1 demo/busybox:2"
    nope=$(small_job alice nope:1 "true")
    check "an image that does not exist holds its job" wait_until 120 "a hold" held_with "$nope" "$env_not_found"
    check "and no container was touched" no_pilot_says "event=switch .*demo/nope"
    env_in_pool condor_rm -all >/dev/null
    check "no puller is left" wait_until 180 "that" no_puller
    env_node_kill registry STOP
    new=$(small_job bob none:1 "cat /etc/image-name")
    check "there is a puller when they are switched off" wait_until 120 "a puller" is_puller
    used=$(read_count used)
    configure "[glidepod]" "cpu_buckets=2"
    check "which is noticed" wait_until 120 "that" settings_were used $((used + 1))
    env_node_kill registry CONT
    check "its job goes on all the same" finished bob "$new" 180
    check "when its image is there" wait_until 30 "its log" a_pilot_says "event=pull image=.*/none:1.* by=ready"
    check "and no puller is left" wait_until 180 "that" no_puller
    configure "pullers=yes" "[glidepod]" "cpu_buckets=2"
    check "they are switched on again" wait_until 120 "that" settings_were used $((used + 2))
    env_node_kill registry STOP
    new=$(small_job bob run:1 "cat /etc/image-name")
    check "another image has a puller" wait_until 120 "a puller" is_puller
    check "which is evicted" evict "$(pullers)"
    env_node_kill registry CONT
    check "its job goes on all the same" finished bob "$new" 180
    check "in its image" equal "$(output_of bob "$new")" "demo/run:1"
    check "and no puller is left" wait_until 180 "that" no_puller
    # However long a busy kubelet takes to end the provisioner: a pilot without a job switches without asking.
    first=$(small_job alice busybox:1 "sleep 600")
    check "a pilot is there" wait_until 120 "a start" runs_now "$first"
    in_system scale deployment glidepod-provisioner --replicas 0 >/dev/null
    check "the provisioner is stopped" wait_until 180 "that" no_provisioners
    # After a question that a busy provisioner has not answered in time, a pilot asks nothing for a minute.
    ! a_pilot_says "event=pull image=.*/busybox:1.* by=time state=silent" || sleep 60
    new=$(small_job bob tools:1 "cat /etc/image-name")
    check "without it a job runs all the same" finished bob "$new" 90
    check "in its image" equal "$(output_of bob "$new")" "demo/tools:1"
    check "after its pilot had no answer" wait_until 30 "that" a_pilot_says "event=pull image=.*/tools:1.* by=time state=silent"
    in_system scale deployment glidepod-provisioner --replicas 2 >/dev/null
    check "it is back" wait_until 120 "that" in_system rollout status deployment glidepod-provisioner --timeout 1s
    check "its job ran all the time" runs_now "$first"
    env_in_pool condor_rm "$first" >/dev/null
    usual_settings
    check "pods end" wait_until 180 "the end of the pods" no_pilots
    kill "$logger"
    logger=""
}
