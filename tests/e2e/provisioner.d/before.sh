# shellcheck shell=bash
# what pods earlier versions made, for jobs that no pilot takes and no node
# holds, and kept, of a wrong image and of pilots that crash: by their
# counts, beside what is done now
#
# Needs: no pods, no jobs.
# Leaves: nothing.

# "(before: ...)" in the name of a check is what an earlier version did there.

decided='cycles_total{result="decided"}'
sees_jobs() {  # COUNT: three cycles have seen so many that pilots would take
    wait_until 60 "three cycles" cycles_were $(($(metric "$decided") + 3)) && metric_is idle_jobs "$1"
}

cycles_were() { (($(metric "$decided") >= $1)); }
made_since() { echo $(($(metric pods_created_total) - $1)); }  # COUNT
have_image() { (($(pilots -o jsonpath='{range .items[*]}{.spec.containers[*].image}{"\n"}{end}' | grep -c -- "$2") == $1)); }  # COUNT IMAGE

none_of() {  # POD...: of these none is there; one that tries may be
    local pod now
    now=$(pilots -o name) || return
    for pod in $1; do [[ $'\n'$now$'\n' != *$'\n'"$pod"$'\n'* ]] || return; done
}

starts_again() {  # TIMES: some pilot has been started so often again
    pilots -o jsonpath='{range .items[*]}{.status.containerStatuses[?(@.name=="pilot")].restartCount}{"\n"}{end}' |
        awk -v times="$1" '$1 >= times { found = 1 } END { exit !found }'
}

test_before() {
    local used created first image=$'\ncontainer_image = docker://'"$env_registry/demo/busybox:1"
    used=$(read_count used)
    created=$(metric pods_created_total)
    configure "max_pods_per_cluster=20" "node_selectors_dict=example.org/room:none"
    check "what is shipped limits pods, and none finds a node" wait_until 120 "that" settings_were used $((used + 1))
    submit_plain 500 'request_disk = 1000000 + 50000 * $(Process)'"$image"
    check "500 jobs with 500 values of RequestDisk have 60 pods (before: 520)" wait_until 60 "that" pilots_are 60
    check "  and no more" eval 'sees_jobs 500 && equal "$(made_since "$created")" 60'
    env_in_pool condor_rm -all >/dev/null
    check "  which go with them" wait_until 90 "the end of the pods" no_pilots

    configure "max_pods_per_cluster=20" "[glidepod]" "max_idle=11"
    check "eleven pods may wait" wait_until 120 "that" settings_were used $((used + 2))
    created=$(metric pods_created_total)
    submit_plain 3000
    check "3,000 jobs without an image are no demand (before: 2.4 idle pilots for ever, 158 a day)" sees_jobs 0
    check "  and no pod is made for them" equal "$(made_since "$created")" 0
    env_in_pool condor_rm -all >/dev/null

    submit_plain 3000 "request_memory = 3TB$image"
    check "3,000 jobs that no node can hold are seen" sees_jobs 3000
    check "  and no pod is made for them (before: eleven)" equal "$(made_since "$created")" 0
    first=$(small_job bob busybox:1 "cat /etc/image-name")
    check "  beside them others run" finished bob "$first" 120

    # Without the right to see nodes, nothing says so but the scheduler.
    as_named delete clusterrolebinding glidepod-provisioner-nodes >/dev/null
    used=$(read_count used)
    configure "max_pods_per_cluster=20" "[glidepod]" "max_idle=11" "unschedulable_limit=15"
    check "the nodes may not be seen" wait_until 120 "that" settings_were used $((used + 1))
    check "  then they fill what may wait" wait_until 90 "eleven pods" pilots_are 11
    check "  until they have found no node for a while" wait_until 90 "one pod" pilots_are 1
    first=$(small_job bob busybox:1 "cat /etc/image-name")
    check "  beside it others run (before: nobody else got a pod)" finished bob "$first" 120
    env_in_pool condor_rm -all >/dev/null
    check "  with the jobs it goes" wait_until 60 "the end of the pods" no_pilots
    env_kubectl apply -f "$env_manifests/provisioner/nodes.yaml" >/dev/null

    used=$(read_count used)
    configure "k8s_image=$env_registry/glidepod/none:1" "max_pods_per_cluster=20" "[glidepod]" "max_idle=11" "breaker_failures=0"
    check "a pilot's image that is not there is configured" wait_until 120 "that" settings_were used $((used + 1))
    clusters=()
    submit_shape alice busybox:1 1 100MB 43
    check "eleven pods have it" wait_until 60 "that" have_image 11 /none:1
    configure "max_pods_per_cluster=20" "[glidepod]" "max_idle=11"
    check "the image is corrected" wait_until 120 "that" settings_were used $((used + 2))
    check "  and all eleven are asked to go (before: they counted on)" wait_until 30 "that" none_stays "$env_registry/glidepod/none:1"
    check "  so that the jobs run" wait_until 240 "the end of the jobs" jobs_ended
    check "  each with its own code, in its image" codes_are_right
    check "  and the pods end" wait_until 180 "the end of the pods" no_pilots

    used=$(read_count used)
    configure "envs_dict=STARTD_NOCLAIM_SHUTDOWN:10,GLIDEPOD_SCRATCH:/nowhere" "[glidepod]" "breaker_first_pause=60" "breaker_longest_pause=60"
    check "a pilot that ends as it starts is configured" wait_until 120 "that" settings_were used $((used + 1))
    created=$(metric pods_created_total)
    clusters=()
    submit_shape alice busybox:1 1 100MB 8
    check "it is started again and again" wait_until 240 "that" starts_again 3
    first=$(pilots -o name)
    check "  its pods are taken back (before: they held nodes for ever)" wait_until 240 "their end" none_of "$first"
    check "  and few are made" [ "$(made_since "$created")" -le 6 ]
    usual_settings
    check "  so that the jobs run" wait_until 240 "the end of the jobs" jobs_ended
    check "  each with its own code, in its image" codes_are_right
    check "  the breaker is closed" metric_is breakers_open 0
    check "  and the pods end" wait_until 180 "the end of the pods" no_pilots
}
