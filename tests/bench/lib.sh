# shellcheck shell=bash
# What the benches share: a pod with real agent and glue, without HTCondor, and a table. Sourced, also for the
# caller's first argument, as tests/e2e/lib.sh is.

source "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
bench_source=$(dirname "${BASH_SOURCE[0]}")
bench_scratch=/glidepod/scratch

# Registry, pod API and the pod "pilot" with so many payload containers, one of which has run a job of bench_image;
# without HTCondor. Needs the images (./run-tests build images).
bench_up() {  # PAYLOAD_CONTAINERS
    local build
    build=$(cd "${GLIDEPOD_BUILD:-$env_tree/build/release}" && pwd) || return
    env_init || return
    if [[ ${GLIDEPOD_ENV_KIND:-} == kubernetes ]]; then
        env_pool_address=none
        env_start_registry && env_kubectl apply -k "$env_manifests/base" >/dev/null || return
    else
        [[ -x $build/bin/podhost ]] || env_die "$build/bin/podhost is missing: ./run-tests build images" || return
        ln -sfn "$build/bin" "$GLIDEPOD_ENV/bin"
        env_start_registry && env_start_podhost || return
    fi
    bench_image=docker://$env_registry/demo/busybox:1
    bench_create_pod "$(env_wide "$1") | $(env_setting GLIDEPOD_COMMAND none)" || return
    wait_until 120 "the first job" bench_as_slot apptainer exec -C "$bench_image" /bin/true ||
        { env_pod; env_pilot_log | tail -n 20; return 1; } >&2
}

# The pilot pod, changed by a filter for jq, without what is HTCondor's alone.
bench_create_pod() {  # FILTER
    env_pilot_pod "$1 | (.spec.containers[].volumeMounts, .spec.volumes) |= map(select(.name != \"pool-token\"))" \
        >"$GLIDEPOD_ENV/pod.json" && env_create_pod "$GLIDEPOD_ENV/pod.json"
}

# The measuring program, in the shared folder at the same path in every container of podhost's.
bench_build_program() {
    g++ -std=c++20 -O2 -static -s -o "$GLIDEPOD_ENV/measure" "$bench_source/measure.cpp" && bench_put_program
}

bench_put_program() { env_podman cp "$GLIDEPOD_ENV/measure" "$(bench_container pilot):$bench_scratch/measure"; }

# The id of one of the pod's containers.
bench_container() {  # NAME
    env_podhost get pilot | jq -er --arg name "$1" \
        '.status.containerStatuses[] | select(.name == $name).containerID | sub(".*://"; "")'
}

# Runs a command in the pilot container as a slot's user.
bench_as_slot() { env_in_pilot pilot setpriv --reuid slot1 --regid slot1 --clear-groups "$@"; }

# A program of the environment with podman's settings, for a measurement of podman itself.
bench_with_podman() {
    CONTAINERS_CONF=$GLIDEPOD_ENV/etc/containers.conf CONTAINERS_STORAGE_CONF=$GLIDEPOD_ENV/etc/storage.conf \
        CONTAINERS_REGISTRIES_CONF=$GLIDEPOD_ENV/etc/registries.conf in_env "$@"
}

# The middle and the largest of numbers, a line each.
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
worst() { sort -n | tail -n 1; }

# One number of measure's output, "NAME best median p90 worst [writer started]", in microseconds.
bench_value() { awk -v name="$2" -v column="$3" '$1 == name { print $column }' <<<"$1"; }  # TABLE NAME COLUMN
bench_best() { bench_value "$1" "$2" 2; }
bench_median() { bench_value "$1" "$2" 3; }

# awk's idea of a condition over numbers: holds "1.5 <= 3".
holds() { awk "BEGIN { exit !($1) }" || { echo "   $1 does not hold"; return 1; }; }
number() { awk "BEGIN { printf \"%.${2:-2}f\", $1 }"; }  # EXPRESSION [DECIMALS]
