# shellcheck shell=bash
# pods that no node takes, whose jobs leave, and that other settings made,
# are taken back; one with a foreign finalizer starts no storm
#
# Needs: no pods.
# Leaves: nothing.

# Those with an image that pilots can switch to, three of eighteen, and no others.
submit_kinds() {
    submit_plain 3 && submit_plain 2 "container_image = docker://$env_registry/demo/busybox:1" &&
        submit_plain 1 '+SingularityImage = "docker://registry.example.org/some/image"' &&
        submit_plain 8 '+SingularityImage = "/tmp/image.sif"' &&
        submit_plain 4 $'+PreCmd = "/bin/true"\ncontainer_image = docker://registry.example.org/some/image'
}

test_back() {
    local used pod created removed
    used=$(read_count used)
    configure "node_selectors_dict=example.org/room:none"
    check "nodes that are not there are configured" wait_until 120 "that" settings_were used $((used + 1))
    check "jobs of five kinds are submitted" submit_kinds
    check "those that pilots take count" wait_until 30 "that" metric_is idle_jobs 3
    sleep 10
    check "and no others" metric_is idle_jobs 3
    env_in_pool condor_rm -all >/dev/null
    # Their pods have waited for a node for a while; those of the next jobs are to begin anew.
    check "they go with their jobs" wait_until 60 "the end of their pods" no_pilots
    submit_shape alice busybox:1 1 100MB 20
    check "two pods wait for the nodes" wait_until 60 "that" pilots_are 2
    check "as status tells, in the scheduler's words" wait_until 30 "that" status_says "UNSCHEDULABLE .*didn't match"
    check "after a while one" wait_until 90 "that" pilots_are 1
    pod=$(pilots -o name)
    env_kubectl patch "$pod" --type merge -p '{"metadata": {"finalizers": ["example.org/foreign"]}}' >/dev/null
    env_in_pool condor_rm -all >/dev/null
    check "with the jobs it goes" wait_until 90 "that" leaves "$pod"
    check "what holds it up is told" wait_until 30 "that" status_says "asked to end, .* kept by the finalizer example.org/foreign"
    created=$(metric pods_created_total) removed=$(metric pods_removed_total)
    sleep 20
    check "one that is held up is asked to go once" equal "$(metric pods_removed_total)" "$removed"
    check "and nothing is made in its place" equal "$(metric pods_created_total)" "$created"
    clusters=()
    submit_shape bob tools:1 1 100MB 8
    check "jobs that come again get pods" wait_until 60 "that" pilots_are 3
    configure
    check "nodes that are there are configured" wait_until 120 "that" settings_were used $((used + 2))
    check "and the jobs end, in pods made so" wait_until 240 "the end of the jobs" jobs_ended
    check "each with its own code, in its image" codes_are_right
    env_kubectl patch "$pod" --type merge -p '{"metadata": {"finalizers": null}}' >/dev/null
    check "pods end" wait_until 180 "the end of the pods" no_pilots
}
