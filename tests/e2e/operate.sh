# shellcheck shell=bash
# Tests of tests/e2e/provisioner, which sources it: docs/operate.md's commands, as they stand there.

operate_md=$env_tree/docs/operate.md

section() { awk -v wanted="## $1" '/^## /{ inside = $0 == wanted } inside' "$operate_md"; }  # NAME
# The shell commands of a section; what is shown of other programs is not among them.
commands_of() { section "$1" | awk '/^```/ { inside = !inside && $0 == "```sh"; next } inside'; }  # NAME

# The tree as an operator has it: manifests and a site's folder, and a kubectl that knows the cluster.
as_operator() {  # COMMANDS
    local here=$GLIDEPOD_ENV/operator
    if [[ ! -e $here ]]; then
        mkdir -p "$here/bin" && ln -s ../manifests "$here/manifests" && ln -s ../site "$here/my-site" || return
        printf '#!/bin/sh\nexec "%s" --kubeconfig "%s" "$@"\n' "$KUBECTL" "$KUBECONFIG" >"$here/bin/kubectl" &&
            chmod 0755 "$here/bin/kubectl" || return
    fi
    (cd "$here" && PATH=$here/bin:$PATH bash -euo pipefail -c "$1" </dev/null)
}
works() {  # COMMANDS
    if as_operator "$1" >"$GLIDEPOD_ENV/said" 2>&1; then
        [[ ! -s $GLIDEPOD_ENV/said && $1 != *.terminated.* ]] || return 0
    fi
    cat "$GLIDEPOD_ENV/said"
    return 1
}

# What the docs show below a command is what it prints, but for names, numbers and times.
shown_in() {  # FILE COMMAND
    awk -v wanted="\$ $2" '/^```/ { inside = 0 } inside; $0 == wanted { inside = 1 }' "$env_tree/docs/$1"
}
# A digest that the node has not told yet is not in the event.
without_names() {
    sed -E 's/ sha256:[0-9a-f]+ \(/ (/; s/sha256:[0-9a-f]+/DIGEST/g; s/(([0-9]+\.){3}[0-9]+|registry\.example\.org)(:[0-9]+)?/HOST/g
        s/glidepod-[0-9a-f]+-[0-9a-f]+-[0-9]+/POD/g; s/<HOST[^>]*>/<HOST>/g; s/[0-9]+/N/g; s/N(\.N)? (ms|s|min|h)\b/TIME/g
        s/Nm?(Ns)?( \(xN over [^)]*\))?  /TIME  /; s/[[:space:]]+/ /g; s/^ //; s/ $//; /^$/d'
}
as_in_docs() {  # FILE COMMAND OUTPUT
    diff <(shown_in "$1" "$2" | without_names) <(without_names <<<"$3") >&2 || { printf '%s\n' "$3" >&2; return 1; }
}

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

# What has not been installed here has lines of its own.
test_uninstall() {
    local lines
    lines=$(commands_of Uninstall | grep -v 'monitoring\|manifests/policy\|validatingadmission')
    check "what was installed is removed" works "$(sed '/grep glidepod/d' <<<"$lines")"
    check "and nothing else is left" equal "$(grep 'grep glidepod$' <<<"$lines" | grep -v persistentvolumes |
        while IFS= read -r line; do as_operator "$line"; done)" ""
    check "but the volumes, on purpose" contains "$(as_operator "kubectl get persistentvolumes")" "$system/data-access-point-0"
}
