# shellcheck shell=bash
# What the benches share: a pod with real agent and glue, without HTCondor, and a table. Sourced.

source "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
bench_source=$(dirname "${BASH_SOURCE[0]}")
bench_scratch=/glidepod/scratch
bench_image=docker://$env_registry/demo/busybox:1

# Registry, podhost and the pod "pilot" with so many payload containers. The measuring program is in the shared
# folder, at the same path in every container. Needs the images (./run-tests build images).
bench_up() {  # PAYLOAD_CONTAINERS
    local build program
    build=$(cd "${GLIDEPOD_BUILD:-$env_tree/build/release}" && pwd) || return
    for program in glue pilot-agent apptainer podhost; do
        [[ -x $build/bin/$program ]] || env_die "$build/bin/$program is missing: ./run-tests build images" || return
    done
    env_init || return
    ln -sfn "$build/bin" "$GLIDEPOD_ENV/bin"
    g++ -std=c++20 -O2 -static -s -o "$GLIDEPOD_ENV/measure" "$bench_source/measure.cpp" || return
    env_start_registry && env_start_podhost || return
    jq --argjson count "$1" '
        .spec.containers |= map(select((.name | startswith("payload-") | not) or (.name | ltrimstr("payload-") | tonumber) < $count))
        | .spec.containers[0].env = [{name: "GLIDEPOD_COMMAND", value: "none"},
                                     {name: "GLIDEPOD_PAYLOAD_CONTAINERS", value: ($count | tostring)}]
        | .spec.containers[0].volumeMounts |= map(select(.name != "pool-token"))
        | .spec.volumes |= map(select(.name != "pool-token"))' "$env_source/pilot-pod.json" >"$GLIDEPOD_ENV/pod.json"
    env_create_pod "$GLIDEPOD_ENV/pod.json" || return
    wait_until 60 "the pod" bench_put_program || { env_podhost get; return 1; }
}

bench_put_program() { env_podman cp "$GLIDEPOD_ENV/measure" "$(bench_container pilot):$bench_scratch/measure"; }

# The id of one of the pod's containers.
bench_container() {  # NAME
    env_podhost get pilot | jq -er --arg name "$1" \
        '.status.containerStatuses[] | select(.name == $name).containerID | sub(".*://"; "")'
}

# Runs a command in the pilot container as a slot's user.
bench_as_slot() { env_in_pilot pilot setpriv --reuid slot1 --regid slot1 --clear-groups "$@"; }

# The container is bound to the image once, so that what is measured is warm.
bench_warm_up() {
    wait_until 60 "the first job" bench_as_slot apptainer exec -C "$bench_image" /bin/true ||
        { env_pilot_log | tail -n 20 >&2; return 1; }
}

# A program of the environment with podman's settings, for a measurement of podman itself.
bench_with_podman() {
    CONTAINERS_CONF=$GLIDEPOD_ENV/etc/containers.conf CONTAINERS_STORAGE_CONF=$GLIDEPOD_ENV/etc/storage.conf \
        CONTAINERS_REGISTRIES_CONF=$GLIDEPOD_ENV/etc/registries.conf in_env "$@"
}

# One number of measure's output, "NAME best median p90 worst [writer started]", in microseconds.
bench_value() { awk -v name="$2" -v column="$3" '$1 == name { print $column }' <<<"$1"; }  # TABLE NAME COLUMN
bench_best() { bench_value "$1" "$2" 2; }
bench_median() { bench_value "$1" "$2" 3; }

# awk's idea of a condition over numbers: holds "1.5 <= 3".
holds() { awk "BEGIN { exit !($1) }" || { echo "   $1 does not hold"; return 1; }; }
number() { awk "BEGIN { printf \"%.${2:-2}f\", $1 }"; }  # EXPRESSION [DECIMALS]
