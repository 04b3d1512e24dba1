# shellcheck shell=bash
# How many switches a node makes in a second: tests/bench/switch --many, which sources this.

# The pods "pilot", "pilot-1" ..., each with so many payload containers.
many_pilots() {  # PODS CONTAINERS
    local n
    bench_up "$2" || return
    for ((n = 1; n < $1; n++)); do
        env_pilot=pilot-$n
        bench_start_pilot "$2" || return
    done
}
in_each_pilot() {  # COMMAND...
    local n code=0
    for ((n = 0; n < pods; n++)); do
        env_pilot=pilot$( ((n == 0)) || echo "-$n")
        "$@" || code=1
    done
    return $code
}

# An image comes again when each container has had five others since, so it is in none of them.
all_side_by_side() {  # CONTAINERS JOBS_EACH
    started=()
    in_each_pilot start_side_by_side "$@"
    wait "${started[@]}"
}
start_side_by_side() {
    bench_jobs "$1" "$2" many $((6 * $1)) /bin/true &
    started+=($!)
}
count_binds() { bench_binds | grep -c "${1:-.}"; }

# Pods of one container that runs nothing, all asked for at once; podman's containers, so many side by side.
run_pods() {  # COUNT
    local n folder=$GLIDEPOD_ENV/pods
    mkdir -p "$folder"
    for ((n = 0; n < $1; n++)); do
        jq -n --arg name "peer-$n" --arg image "$env_registry/many/$((n % (6 * each))):1" '{apiVersion: "v1", kind: "Pod",
            metadata: {name: $name, labels: {bench: "peer"}},
            spec: {restartPolicy: "Never", automountServiceAccountToken: false, enableServiceLinks: false,
                   containers: [{name: "peer", image: $image, command: ["/bin/true"]}]}}' >"$folder/$n.json"
    done
    # Without kubectl's own limit on requests.
    for ((n = 0; n < $1; n++)); do
        printf 'next\nurl = "http://localhost/api/v1/namespaces/%s/pods"\nheader = "Content-Type: application/json"\n' "$env_namespace"
        printf 'data = "@%s"\noutput = /dev/null\nunix-socket = "%s"\nfail\n' "$folder/$n.json" "$GLIDEPOD_ENV/proxy.sock"
    done | sed 1d >"$folder/all"
    began=$(now_ms)
    curl -s -K "$folder/all" && wait_until 600 "$1 pods" pods_have_run "$1"
}
pods_have_run() { (($(env_kubectl get pods -l bench=peer --field-selector status.phase=Succeeded -o name | wc -l) == $1)); }
run_containers() {  # COUNT
    began=$(now_ms)
    # shellcheck disable=SC2016  # xargs' shell's
    seq "$1" | bench_with_podman xargs -P "$containers" -I '{}' sh -c \
        'podman run --rm "$1/many/$(($2 % $3)):1" /bin/true >/dev/null' sh "$env_registry" '{}' $((6 * each))
}

many_switches() {
    local each=$((containers / pods)) before after began took switched peers=$((jobs / 4)) peer
    ((each > 0)) || { echo "switch: fewer pods than containers are wanted" >&2; return 2; }
    many_pilots "$pods" "$each" && bench_put_images many $((6 * each)) || return
    env_say "the first job of each image in each of $pods pods"
    all_side_by_side "$each" 6
    before=$(in_each_pilot count_binds "^switched" | awk '{ n += $1 } END { print n }')
    env_say "$jobs jobs, $containers at a time"
    began=$(now_ms)
    all_side_by_side "$each" $((jobs / containers))
    took=$(($(now_ms) - began))
    after=$(in_each_pilot count_binds "^switched" | awk '{ n += $1 } END { print n }')
    switched=$((after - before))
    ours=$(number "$switched * 1000 / $took")
    env_say "$peers of the peer's"
    if [[ $env_kind == kubernetes ]]; then
        peer="pods created and run" && start_proxy && run_pods "$peers" || return
    else
        peer="podman run" && run_containers "$peers" || return
    fi
    took=$(($(now_ms) - began))
    theirs=$(number "$peers * 1000 / $took")
    printf '%-52s %8s %12s\n' "" times "a second" \
        "image switches, $containers containers in $pods pods" "$switched" "$ours" "$peer, as many as it can" "$peers" "$theirs"
    echo "ratio: $(number "$ours / $theirs" 1) x"
    check "nearly every job had a container whose image was changed" holds "$switched >= 0.95 * $((jobs / containers * containers))"
    check "at least as many switches as $peer" holds "$ours >= $theirs"
    check "more than 5 switches a second" holds "$ours > 5"
    env_pilot=pilot
    e2e_summary
}
