# shellcheck shell=bash
# what `provisioner why` says of jobs without a pilot, each for a reason of
# its own
#
# Needs: no jobs.
# Leaves: that the image none:2 failed, in what the leader remembers.

source "$e2e_source/operate.sh"

submit_why() {  # LINE... : prints the job's number
    printf '%s\n' "universe = vanilla" "executable = /bin/true" "transfer_executable = false" "$@" queue |
        env_as alice condor_submit -terse - | sed -n '1s/ .*//p'
}

test_why() {
    local used image="container_image = docker://$env_registry/demo/busybox:1" absent runs bare hook file large held first second
    local inner expression unmet nonsense
    used=$(read_count used)
    absent=$(small_job alice nope:1 "true")
    bare=$(submit_why)
    hook=$(submit_why "$image" '+PreCmd = "/bin/true"')
    file=$(submit_why '+SingularityImage = "/tmp/image.sif"')
    large=$(submit_why "$image" "request_memory = 4TB")
    held=$(submit_why "$image" "hold = true")
    inner=$(submit_why "$image" "+GlidepodPilot = True")
    expression=$(submit_why "+ContainerImage = MY.Site")
    unmet=$(submit_why "$image" "requirements = RequestCpus > 100")
    nonsense=$(submit_why "$image")
    env_as alice condor_qedit "$nonsense" RequestMemory '"much"' >/dev/null
    check "there is no such job" why_is 999.0 6 no-such-job
    check "one without an image" why_is "$bare" 5 no-image
    check "one that START refuses" why_is "$hook" 5 not-taken 'PreCmd = "/bin/true"'
    check "one whose image is a file" why_is "$file" 5 image-form /tmp/image.sif
    check "one that is a pilot itself" why_is "$inner" 5 pilot-job
    check "one whose image is an expression of nothing" why_is "$expression" 5 image-expression MY.Site
    check "one whose own requirements cannot be met" why_is "$unmet" 5 requirements "RequestCpus > 100"
    check "one whose request is no number" why_is "$nonsense" 5 request much
    check "one that is larger than every node" why_is "$large" 5 too-large "larger than every node"
    check "one that was submitted on hold" why_is "$held" 5 held-by-hand "code 15"
    # Longer than the answer takes on a busy machine.
    runs=$(small_job alice busybox:1 "sleep 40")
    check "one that runs" wait_until 120 "that" why_is "$runs.0" 0 runs
    check "one that is held for its image" wait_until 120 "that" why_is "$absent.0" 5 held-image "$env_not_found"
    finished alice "$runs" 60
    check "one that has completed" why_is "$runs.0" 0 completed "exit code 0"
    env_in_pool condor_rm -all >/dev/null
    check "one that was removed" wait_until 30 "that" why_is "$bare" 0 removed condor_rm
    configure "node_selectors_dict=example.org/room:none" 'additional_requirements=(TARGET.Wanted =!= "nowhere")' "[glidepod]" "max_pods=1" \
        "[htcondor]" 'additional_requirements=(ProjectName =!= "none")'
    check "nodes that are not there are configured, and one pod" wait_until 120 "that" settings_were used $((used + 1))
    check "the pods from before end" wait_until 180 "that" no_pilots
    first=$(submit_why "$image")
    check "one whose pod has no node" wait_until 30 "that" why_is "$first" 5 unschedulable "didn't match"
    check "  as the docs show it" as_in_docs operate.md "provisioner why 12.0" "$(why_at "$(leader)" "$first")"
    second=$(submit_why "$image" "request_cpus = 2")
    check "one for which there may be no pod" wait_until 30 "that" why_is "$second" 5 cap "max_pods: 1 -> 0"
    first=$(submit_why "$image" '+ProjectName = "none"')
    second=$(submit_why "$image" '+Wanted = "nowhere"')
    check "one that the site's settings leave out" why_is "$first" 5 query 'ProjectName = "none"'
    check "one that the pilots' settings refuse" why_is "$second" 5 pilot-requirements 'Wanted = "nowhere"'
    env_in_pool condor_rm -all >/dev/null
    used=$(read_count used)
    # One whose breaker no other test has opened.
    configure "k8s_image=$env_registry/glidepod/none:2"
    check "a pilot's image that is not there is configured" wait_until 120 "that" settings_were used $((used + 1))
    first=$(submit_why "$image")
    check "one whose pod cannot have the pilot's image" wait_until 60 "that" why_is "$first" 5 pilot-image "$env_not_found"
    check "one whose pods failed for it" wait_until 60 "that" why_is "$first" 5 breaker "next try in"
    env_in_pool condor_rm -all >/dev/null
    usual_settings
    check "pods end" wait_until 180 "the end of the pods" no_pilots
}
