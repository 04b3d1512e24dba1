# shellcheck shell=bash
# What the benches share: a pod with real agent and glue, without HTCondor, images to switch between, binds as the
# pilot's log has them, and a table. Sourced, also for the caller's first argument, as tests/e2e/lib.sh is.

source "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
bench_source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bench_scratch=/glidepod/scratch

# Registry, pod API and the pod "pilot" with so many payload containers, one of which has run a job of bench_image;
# without HTCondor. Needs the images (./run-tests build images).
bench_up() {  # PAYLOAD_CONTAINERS [FILTER]
    bench_init && bench_serve && bench_start_pilot "$@"
}
bench_init() {
    local build
    build=$(cd "${GLIDEPOD_BUILD:-$env_tree/build/release}" && pwd) && env_init || return
    [[ $env_kind == podhost ]] || return 0
    [[ -x $build/bin/podhost ]] || env_die "$build/bin/podhost is missing: ./run-tests build images" || return
    ln -sfn "$build/bin" "$GLIDEPOD_ENV/bin"
}
# Registry and pod API.
bench_serve() {
    if [[ $env_kind == kubernetes ]]; then
        env_pool_address=none
        env_start_registry && env_kubectl apply -k "$env_manifests/base" >/dev/null || return
    else
        env_start_registry && env_start_podhost || return
    fi
    bench_image=docker://$env_registry/demo/busybox:1
}
# The pod that env_pilot names.
bench_start_pilot() {  # PAYLOAD_CONTAINERS [FILTER]
    bench_create_pod "$(env_wide "$1") | $(env_setting GLIDEPOD_COMMAND none) | ${2:-.}" || return
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

# The comment at the head of the bench, as its usage.
bench_usage() { awk 'NR > 1 { if (!sub(/^# ?/, "")) exit; print }' "$0"; }
# One option's value, which has to be a number.
bench_number() {  # OPTION VALUE
    [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "${0##*/}: $1 needs a number, not ${2:-nothing}" >&2; exit 2; }
    echo "$2"
}

# A root file system for jobs: busybox, and a file by which its image can be told.
bench_image_root() {  # DIR NAME
    local applet
    mkdir -p "$1"/{bin,etc,proc,sys,dev,tmp,var/tmp} && chmod 1777 "$1/tmp" "$1/var/tmp" &&
        cp /bin/busybox "$1/bin/busybox" || return
    for applet in sh sleep usleep cat true; do ln -s busybox "$1/bin/$applet"; done
    echo "root:x:0:0:root:/root:/bin/sh" >"$1/etc/passwd"
    echo "root:x:0:" >"$1/etc/group"
    echo "$2" >"$1/etc/image-name"
}

# Puts an image of one layer into the registry, as it is: nothing is compressed.
bench_put_image() {  # NAME LAYER_TAR
    local folder=$GLIDEPOD_ENV/push layer config size tag=${1##*:} name=${1%:*}
    mkdir -p "$folder" && layer=$(bench_put_blob "$name" "$2") || return
    jq -n --arg layer "$layer" --arg arch "$(dpkg --print-architecture)" '{architecture: $arch, os: "linux",
        rootfs: {type: "layers", diff_ids: [$layer]}, config: {Env: ["PATH=/bin"], Cmd: ["/bin/sh"]}}' >"$folder/config"
    config=$(bench_put_blob "$name" "$folder/config") || return
    size=$(stat -c %s "$2")
    jq -n --arg layer "$layer" --argjson size "$size" --arg config "$config" --argjson config_size "$(stat -c %s "$folder/config")" '{
        schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json",
        config: {mediaType: "application/vnd.oci.image.config.v1+json", digest: $config, size: $config_size},
        layers: [{mediaType: "application/vnd.oci.image.layer.v1.tar", digest: $layer, size: $size}]}' >"$folder/manifest"
    bench_registry "$name/manifests/$tag" -T "$folder/manifest" -H "Content-Type: application/vnd.oci.image.manifest.v1+json"
}
bench_put_blob() {  # NAME FILE; prints its digest
    local digest location
    digest=sha256:$(sha256sum "$2" | cut -d' ' -f1)
    location=$(bench_registry "$1/blobs/uploads/" -X POST -D - | tr -d '\r' | sed -n 's,^[Ll]ocation: .*/v2/,,p') &&
        bench_registry "$location&digest=$digest" -T "$2" -H "Content-Type: application/octet-stream" && echo "$digest"
}
bench_registry() {  # PATH [OPTION...]
    local where=(in_env)
    [[ $env_kind == podhost ]] || where=()
    "${where[@]}" curl -sS --fail -o /dev/null "http://$env_registry/v2/$1" "${@:2}"
}
# One layer: what bench_image_root makes, and maybe a file "content" of so many MB of noise.
bench_layer() {  # TAR NAME [MEGABYTES]
    local root=$GLIDEPOD_ENV/root code
    bench_image_root "$root" "$2" && head -c "${3:-0}000000" /dev/urandom >"$root/content" &&
        tar -C "$root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$1" .
    code=$?
    rm -rf "$root"
    return $code
}

# So many images PREFIX/0:1, PREFIX/1:1 ... that differ in their names alone.
bench_put_images() {  # PREFIX COUNT
    local i tar=$GLIDEPOD_ENV/layer.tar
    debian_packages busybox-static || return
    for ((i = 0; i < $2; i++)); do bench_layer "$tar" "$1/$i:1" && bench_put_image "$1/$i:1" "$tar" || return; done
    env_say "the registry has $1/0:1 to $1/$(($2 - 1)):1"
}

# In the pilot that env_pilot names: so many jobs one after the other for each of the first slots, all slots side by side,
# until all are done or bench_stop_jobs. Each has another image than those before it, of PREFIX/0:1 to PREFIX/COUNT-1:1.
bench_jobs() {  # SLOTS JOBS_EACH PREFIX COUNT COMMAND...
    env_in_pilot pilot rm -f "$bench_scratch/stop" || return
    # shellcheck disable=SC2016  # the shells' there
    env_in_pilot pilot sh -c '
        export stop="$1" slots="$2" jobs="$3" images="$4" count="$5"
        shift 5
        for slot in $(seq "$slots"); do
            slot=$slot setpriv --reuid "slot$slot" --regid "slot$slot" --clear-groups sh -c '\''
                for job in $(seq "$jobs"); do
                    [ ! -e "$stop" ] || exit 0
                    apptainer exec -C "docker://$images/$(((job * slots + slot) % count)):1" "$@" || exit
                done'\'' sh "$@" &
        done
        wait' sh "$bench_scratch/stop" "$1" "$2" "$env_registry/$3" "${@:4}"
}
bench_stop_jobs() { env_in_pilot pilot touch "$bench_scratch/stop"; }

# The binds of jobs in the pilot's log, "HOW MILLISECONDS IMAGE" a line, from one of them on.
bench_binds() {  # [FIRST]
    env_pilot_log | sed -nE '/event=bound /s/.* image=([^ ]+) .* how=([a-z]+) bind_ms=([0-9.]+) .*/\2 \3 \1/p' |
        grep -v '^any ' | tail -n "+${1:-1}"
}

# The middle and the largest of numbers, a line each, and the one that so many percent do not exceed.
percentile() { sort -n | awk -v part="$1" '{ v[NR] = $1 } END { at = int(NR * part / 100); if (at < NR * part / 100) ++at; print NR ? v[at] : "-" }'; }  # PERCENT
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
worst() { sort -n | tail -n 1; }

# One number of measure's output, "NAME best median p90 worst [writer started]", in microseconds.
bench_value() { awk -v name="$2" -v column="$3" '$1 == name { print $column }' <<<"$1"; }  # TABLE NAME COLUMN
bench_best() { bench_value "$1" "$2" 2; }
bench_median() { bench_value "$1" "$2" 3; }

# awk's idea of a condition over numbers: holds "1.5 <= 3".
holds() { awk "BEGIN { exit !($1) }" || { echo "   $1 does not hold"; return 1; }; }
number() { awk "BEGIN { printf \"%.${2:-2}f\", $1 }"; }  # EXPRESSION [DECIMALS]
