# shellcheck shell=bash
# The test environment: a registry, an HTCondor pool and a pilot pod, of one of two
# kinds. Sourced by up, down, run-demo, run-tests, tests/e2e and tests/bench.
#
#   source tests/env/lib.sh
#   trap env_down EXIT        # also after INT and TERM
#   env_up BUILD_DIR          # everything; or env_init, env_start_registry, ... singly
#
# podhost.sh, the usual one, has pods by podhost over podman; kubernetes.sh, with
# GLIDEPOD_ENV_KIND=kubernetes, those of a real kubelet. Both have the same functions:
#
#   env_up env_down env_running    all of it; whether GLIDEPOD_ENV is one that runs
#   in_env COMMAND...              where the processes of all pods are seen, as root
#   env_in_pool COMMAND...         in the pool; env_as USER COMMAND... as one of its users
#   env_put_jobs DIR               DIR's files as /jobs in the pool
#   env_pilot_pod [FILTER]         the pilot pod of this environment as JSON, changed by jq
#   env_create_pod FILE            a pod from JSON; env_delete_pod NAME [SECONDS]
#   env_end_pod NAME SECONDS       asks for its end and does not wait
#   env_start_pilot [FILE]         a pilot pod, until its slot is in the pool
#   env_pod                        the pilot pod as the API has it
#   env_pilot_log [CONTAINER]      what a container of it has said
#   env_in_pilot CONTAINER COMMAND...
#
# The last three concern the pod that env_pilot names.

env_source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
env_tree=$(cd "$env_source/../.." && pwd)
source "$env_tree/images/containers.sh"

env_cache=${GLIDEPOD_CACHE:-/var/cache/glidepod}
env_pilot=pilot

# The Debian of the pilot and of the pool, and so their HTCondor (images/build --suite):
# GLIDEPOD_SUITE, and GLIDEPOD_POOL_SUITE where the pool's is another.
env_tag_of() { [[ $1 == trixie ]] && echo dev || echo "dev-$1"; }  # SUITE
env_pilot_image=glidepod/pilot:$(env_tag_of "${GLIDEPOD_SUITE:-trixie}")
env_pool_image=glidepod/pool:$(env_tag_of "${GLIDEPOD_POOL_SUITE:-${GLIDEPOD_SUITE:-trixie}}")

env_say() { echo "env: $*" >&2; }
env_die() { env_say "$*"; return 1; }

# How many times as long as where the tests' patience was measured (2 ms) this machine takes to start a program, from 1
# to 4: a virtual machine below which page tables are shadowed takes 10 ms, and pool and cluster are made of programs that
# start. Measured once, in processor time, which does not grow with what runs beside it.
env_slowness() {
    local TIMEFORMAT="%3U %3S" times
    if [[ -z ${GLIDEPOD_SLOWNESS:-} ]]; then
        times=$({ time for _ in {1..100}; do /bin/true; done; } 2>&1)
        GLIDEPOD_SLOWNESS=$(awk '{ n = int(($1 + $2) * 10 / 2 + 0.5); print (n < 1 ? 1 : n > 4 ? 4 : n) }' <<<"$times")
        export GLIDEPOD_SLOWNESS
        ((GLIDEPOD_SLOWNESS == 1)) || env_say "programs start slowly here: to wait for something may take $GLIDEPOD_SLOWNESS times as long"
    fi
}
env_slowness

# Runs a command until it succeeds, at most SECONDS long. More than ten are patience, and a slow machine has more of it;
# fewer are a claim.
wait_until() {  # SECONDS WHAT COMMAND...
    local wait_began=${EPOCHREALTIME/[.,]/} waited=0 wait_limit=$1 what=$2 pause asked cost longest
    ((wait_limit <= 10)) || wait_limit=$((wait_limit * GLIDEPOD_SLOWNESS))
    # By SECONDS, which has no fractions, two of them would be anything from one to two.
    wait_limit=$((wait_limit * 1000000))
    longest=$((wait_limit < 40000000 ? wait_limit / 8 : 5000000))
    shift 2
    while asked=${EPOCHREALTIME/[.,]/}; ! "$@" >/dev/null 2>&1; do
        waited=$((${EPOCHREALTIME/[.,]/} - wait_began))
        ((waited < wait_limit)) || { env_say "gave up waiting for $what"; return 1; }
        # To ask may cost more than what is waited for does, and many wait at a time: less and less often, and for a
        # seventh of the time at most.
        cost=$((waited + wait_began - asked))
        pause=$((waited < 3000000 ? 100000 : waited < 20000000 ? 500000 : 1000000))
        ((pause > 6 * cost)) || pause=$((6 * cost))
        ((pause <= longest)) || pause=$longest
        env_pause "$pause"
    done
}

# Sleeps without a program, which takes a tenth of what is usually slept. In a process of its own: where a trap exits in
# the middle of its read, bash 5.2 ends by a segmentation fault in the cleaning up that follows.
env_pause() {  # MICROSECONDS
    local seconds
    [[ -n ${env_nothing:-} ]] || exec {env_nothing}<> <(:)
    printf -v seconds '%d.%06d' $(($1 / 1000000)) $(($1 % 1000000))
    (read -rt "$seconds" -u "$env_nothing") || true
}

# A PID with its start time, which together never name another process.
env_identity() {  # PID
    echo "$1 $(sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f20)"
}

# Runs a command where a process of a container is, with its environment: a runtime takes a tenth of a second and more for
# that, and kubectl needs what tests stop.
env_beside() {  # PID COMMAND...
    local environment kept=$GLIDEPOD_ENV/environment-$1
    if [[ ! -s $kept ]]; then
        in_env cat "/proc/$1/environ" >"$kept.$BASHPID" && mv "$kept.$BASHPID" "$kept" || return
    fi
    mapfile -d '' environment <"$kept"
    in_env nsenter --target "$1" --mount --uts --net --ipc --pid -- env --ignore-environment "${environment[@]}" "${@:2}"
}
env_exec_in_pool() {
    local pid
    if [[ -s $GLIDEPOD_ENV/pool-pid ]]; then
        read -r pid <"$GLIDEPOD_ENV/pool-pid"
        env_beside "$pid" "$@"
    else
        env_kubectl exec --stdin pool -- "$@"
    fi
}
env_in_pool() { env_exec_in_pool "$@" </dev/null; }
env_as() {  # USER COMMAND...
    env_exec_in_pool setpriv --reuid "$1" --regid "$1" --init-groups \
        env -C "/home/$1" "HOME=/home/$1" "USER=$1" "${@:2}"
}
env_put_jobs() { tar -C "$1" -c . | env_exec_in_pool sh -c 'mkdir -p /jobs && tar -C /jobs -x'; }  # DIR

# Gives a registry what images/build made. What the first one got is kept in the cache for the others, which take its
# layers, that nobody changes, as links.
env_images=(demo/busybox:1 demo/busybox:2 demo/tools:1 demo/static:1 demo/run:1 demo/none:1 demo/blocked:1)
env_push_images() {
    local image
    for image in "${env_images[@]}"; do env_push "$image" "$env_registry/$image" || return; done
}
env_fill_registry() {  # FOLDER
    local ids kept=$env_cache/registry-$env_kind content=docker/registry/v2
    ids=$(containers_conf_of_cache podman image inspect --format '{{.Id}}' "${env_images[@]/#/localhost/}") || return
    (
        flock 9
        if [[ $(cat "$kept/images" 2>/dev/null) != "${env_images[*]} $ids" ]]; then
            env_push_images && rm -rf "$kept" && cp -a "$1/$content" "$kept" && echo "${env_images[*]} $ids" >"$kept/images"
            exit
        fi
        mkdir -p "$1/$content" || exit
        cp -aln "$kept/blobs" "$1/$content/" 2>/dev/null || cp -an "$kept/blobs" "$1/$content/" || exit
        cp -a "$kept/repositories" "$1/$content/"
    ) 9>"$kept.lock"
}
containers_conf_of_cache() {
    CONTAINERS_CONF=$env_cache/podman/etc/containers.conf \
        CONTAINERS_STORAGE_CONF=$env_cache/podman/etc/storage.conf "$@"
}

# Submits a job description read from standard input; prints the job's id.
env_submit() {  # [USER]
    env_as "${1:-alice}" condor_submit -terse - | sed -n 's/ .*//p'
}

# Prints attributes of a job, from the queue or the history.
env_job() {  # ID ATTRIBUTE...
    local job=$1 line
    shift
    line=$(env_in_pool condor_q "$job" -allusers -af:, "$@")
    [[ -n $line ]] || line=$(env_in_pool condor_history "$job" -limit 1 -af:, "$@")
    echo "$line"
}

env_job_has() {  # ID ATTRIBUTE VALUE
    [[ $(env_job "$1" "$2") == "$3" ]]
}

# The pilot pod with N payload containers, each with its /dev/shm, and as many slots, however few processors there are: a
# filter for jq.
env_wide() {  # N
    cat <<EOF
.spec.containers |= (map(select(.name | startswith("payload-") | not)) +
    [range($1) as \$n | map(select(.name == "payload-0"))[0] |
        .name = "payload-\(\$n)" | .command[-1] = .name |
        (.volumeMounts[] | select(.mountPath == "/dev/shm")).name = "\(.name)-shm"])
    | .spec.volumes |= (map(select(.name | endswith("-shm") | not)) +
    [range($1) | {name: "payload-\(.)-shm", emptyDir: {medium: "Memory", sizeLimit: "64Mi"}}])
    | $(env_setting NUM_CPUS "$1") | $(env_setting GLIDEPOD_PAYLOAD_CONTAINERS "$1")
EOF
}

# A variable in the pilot container's environment: a filter for jq.
env_setting() {  # NAME VALUE
    echo ".spec.containers[0].env |= (map(select(.name != \"$1\")) + [{name: \"$1\", value: \"$2\"}])"
}

# A pilot pod, until its slot is in the pool.
env_start_pilot() {  # [FILE]
    local file=${1:-}
    if [[ -z $file ]]; then
        file=$GLIDEPOD_ENV/$env_pilot.json
        env_pilot_pod >"$file" || return
    fi
    env_create_pod "$file" || return
    if ! wait_until 90 "the pilot's slot" env_pilot_ready; then
        env_pod | jq .status
        env_pilot_log | tail -n 20
        return 1
    fi >&2
    env_say "the pilot has joined the pool"
}

env_pilot_ready() {
    env_in_pool condor_status -constraint "K8SPodName == \"$env_pilot\"" -af HasSingularity | grep true >/dev/null
}

env_pool_ready() { env_in_pool condor_status -schedd -af Name | grep . >/dev/null; }

if [[ ${GLIDEPOD_ENV_KIND:-} == kubernetes || -e ${GLIDEPOD_ENV:-/nonexistent}/kubernetes ]]; then
    source "$env_source/kubernetes.sh"
else
    source "$env_source/podhost.sh"
fi
