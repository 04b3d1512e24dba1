# shellcheck shell=bash
# a new pod's container starts on the image that jobs want, where they bind
# warm; one whose image does not exist keeps no job of its pod waiting
#
# Needs: no jobs.
# Leaves: nothing.

test_born() {
    local used warm nope other
    used=$(read_count used)
    rm -f "$GLIDEPOD_ENV"/pilot-*.log
    configure "born_ready=yes" "[glidepod]" "cpu_buckets=2"
    check "pods are to be born ready" wait_until 120 "that" settings_were used $((used + 1))
    check "after those from before" wait_until 180 "that" no_pilots
    record_logs &
    logger=$!
    warm=$(small_job alice tools:1 "cat /etc/image-name")
    check "a job runs" finished alice "$warm" 120
    check "in its image" equal "$(output_of alice "$warm")" demo/tools:1
    check "in a container that was born on it" equal "$(history_of "$warm" ChirpGlidepodHow ChirpGlidepodContainer)" "0 warm payload-1"
    check "as the pilot's log tells" wait_until 20 "that" a_pilot_says "event=born container=payload-1 image=.*/tools:1"
    check "and no container was switched to it" no_pilot_says "event=switch .*demo/tools"
    check "the pod ends" wait_until 180 "that" no_pilots
    # By a name that nothing but this pod wants.
    nope=$(small_job alice nope:1 "true")
    check "a pod is made for an image that does not exist" wait_until 60 "that" pilots_are 1
    other=$(small_job bob busybox:1 "cat /etc/image-name")
    check "a job of another image runs in it" finished bob "$other" 120
    check "in its image" equal "$(output_of bob "$other")" demo/busybox:1
    check "the other one is held for its image" wait_until 60 "that" held_with "$nope" "$env_not_found"
    check "the container was given up" wait_until 20 "that" a_pilot_says "event=not_born container=payload-1 image=.*/nope:1"
    check "its pod counted as no failure" equal "$(metric 'pods{state="pull error"}') $(metric breakers_open)" "0 0"
    env_in_pool condor_rm -all >/dev/null
    usual_settings
    check "pods end" wait_until 180 "the end of the pods" no_pilots
    kill "$logger"
    logger=""
}
