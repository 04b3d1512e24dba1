# shellcheck shell=bash
# the commands of docs/operate.md, as they stand there
#
# Needs: no pods.
# Leaves: nothing.

source "$e2e_source/operate.sh"

test_operate() {
    local job pod command count=0 typo
    job=$(small_job alice busybox:1 "sleep 300")
    check "a job runs" wait_until 120 "a start" runs_now "$job"
    pod=$(pilots -o jsonpath='{.items[0].metadata.name}')
    filled() { sed "s/LEADER/$(leader | sed s,pod/,,)/; s/POD /$pod /; s/CLUSTER\.PROC/$job.0/"; }
    check "whether it is installed: the commands" works "$(commands_of Install | filled)"
    check "which version runs: the commands" works "$(commands_of Upgrade | filled)"
    while IFS= read -r command; do
        count=$((count + 1))
        check "  $command" works "$(filled <<<"$command")"
    done < <(section Debug | sed -n 's/^|[^|]*| [^`|]*`\(kubectl [^`]*\)`.*/\1/p')
    check "what does this pod do? its Events" wait_until 60 "them" bound_is_told
    check "  as the docs show them" as_in_docs operate.md "kubectl describe pod POD --namespace glidepod | grep glidepod-provisioner" \
        "$(as_operator "kubectl describe pod $pod --namespace glidepod | grep glidepod-provisioner")"
    typo=$({ shell_job "$env_registry/demo/bysybox:1" true; echo queue; } | submit alice)
    check "why is it held? somebody's image does not exist" wait_until 120 "a hold" held_with "$typo" "$env_not_found"
    check "  as the docs show it" as_in_docs user.md "condor_q -hold 12.0" "$(env_as alice condor_q -hold "$typo.0" </dev/null | sed '/^--/d; /^Total/d')"
    check "and these were all of the table" equal "$count" "$(section Debug | grep -c '^| .*`kubectl')"
    env_in_pool condor_rm -all >/dev/null
    check "pods end" wait_until 180 "the end of the pods" no_pilots
}
