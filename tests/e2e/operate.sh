# shellcheck shell=bash
# The docs' commands as an operator runs them, and what the docs show of their output. Sourced by scenes of
# tests/e2e/provisioner.

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
