# shellcheck shell=bash
# The test environment with podhost, in namespaces of its own. Sourced by lib.sh.
#
# One process, the keeper, is PID 1 of the environment's PID namespace. Its
# network holds a loopback and podman's bridge, its /run is a tmpfs, its mounts
# are private: whatever happens, when the keeper ends, so does every process,
# mount and interface. Files lie in one folder, GLIDEPOD_ENV.

env_kind=podhost
env_registry=127.0.0.1:5000
env_pod_registry=10.88.0.1:5000  # the same, as pods reach it too
env_pool_address=10.88.0.2
env_provisioner_address=10.88.1.3  # not one of those that pods get one after the other
env_not_found="manifest unknown"  # of a registry's answer, as this environment passes it on

# Runs a command inside the environment.
in_env() {
    local keeper
    read -r keeper <"$GLIDEPOD_ENV/keeper"
    nsenter --target "$keeper" --mount --net --pid -- "$@"
}

# Podman with the environment's own storage.
env_podman() {
    CONTAINERS_CONF=$GLIDEPOD_ENV/etc/containers.conf \
        CONTAINERS_STORAGE_CONF=$GLIDEPOD_ENV/etc/storage.conf \
        CONTAINERS_REGISTRIES_CONF=$GLIDEPOD_ENV/etc/registries.conf \
        in_env podman "$@"
}

# Starts a program in the environment that runs until env_down. Its output goes
# to log/NAME.log.
env_start() {  # NAME COMMAND...
    local name=$1
    shift
    CONTAINERS_CONF=$GLIDEPOD_ENV/etc/containers.conf \
        CONTAINERS_STORAGE_CONF=$GLIDEPOD_ENV/etc/storage.conf \
        CONTAINERS_REGISTRIES_CONF=$GLIDEPOD_ENV/etc/registries.conf \
        in_env setsid --fork sh -c 'echo $$ >"$1"; shift; exec "$@"' sh \
        "$GLIDEPOD_ENV/log/$name.pid" "$@" \
        </dev/null >"$GLIDEPOD_ENV/log/$name.log" 2>&1
    wait_until 5 "$name" test -s "$GLIDEPOD_ENV/log/$name.pid"
}

# Ends a program started by env_start and waits until it is gone.
env_stop() {  # NAME [SIGNAL]
    local pid
    read -r pid <"$GLIDEPOD_ENV/log/$1.pid"
    in_env kill -s "${2:-TERM}" "$pid" 2>/dev/null || return 0
    wait_until 20 "the end of $1" env_gone "$pid"
}

env_gone() { ! in_env kill -0 "$1" 2>/dev/null; }

# Debian packages the environment runs on.
env_packages() {
    debian_packages podman buildah runc conmon netavark iptables catatonit iproute2 mount procps \
        util-linux docker-registry curl jq
}

# With GLIDEPOD_RUNTIME=crun containers are started by Debian's crun, which is kept in the cache and not installed: there it
# would be what every podman takes.
env_use_crun() {
    local folder=$env_cache/crun
    if [[ ! -x $folder/crun ]]; then
        rm -rf "$folder" && mkdir -p "$folder" && (cd "$folder" && apt-get -q download crun libyajl2 &&
            for package in *.deb; do dpkg-deb -x "$package" .; done &&
            printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$folder/usr/lib/x86_64-linux-gnu" "$folder/usr/bin/crun" >crun &&
            chmod 0755 crun) >&2 || return
    fi
    sed -i -e '/^runtime = /d' -e '/^\[engine\]/a runtime = "crun"' "$GLIDEPOD_ENV/etc/containers.conf"
    printf '\n[engine.runtimes]\ncrun = ["%s"]\n' "$folder/crun" >>"$GLIDEPOD_ENV/etc/containers.conf"
    # It refuses cgroups of both versions beside each other.
    ! mountpoint -q /sys/fs/cgroup/unified || in_env umount /sys/fs/cgroup/unified || return
    env_say "containers are started by $("$folder/crun" --version | head -n 1)"
}

# With GLIDEPOD_HOOKS=FOLDER podman runs the hooks of FOLDER/hook.json with each container, in whose text HERE is that folder.
env_use_hooks() {
    mkdir -p "$GLIDEPOD_ENV/hooks" && sed "s|HERE|$GLIDEPOD_HOOKS|" "$GLIDEPOD_HOOKS/hook.json" >"$GLIDEPOD_ENV/hooks/hook.json" &&
        sed -i "/^\[engine\]/a hooks_dir = [\"$GLIDEPOD_ENV/hooks\"]" "$GLIDEPOD_ENV/etc/containers.conf"
}

# Makes the folder and the namespaces. GLIDEPOD_ENV says where; a new temporary
# folder unless set.
env_init() {
    [[ $(id -u) == 0 ]] || env_die "must run as root" || return
    env_packages || return
    [[ -d $env_cache/podman/storage ]] || env_die "no images yet: see images/build --help" || return
    GLIDEPOD_ENV=${GLIDEPOD_ENV:-$(mktemp -d /tmp/glidepod.XXXXXX)}
    export GLIDEPOD_ENV
    [[ ! -e $GLIDEPOD_ENV/keeper ]] || env_die "$GLIDEPOD_ENV is in use" || return
    mkdir -p "$GLIDEPOD_ENV"/{log,etc,registry,tokens}
    (containers_use "$GLIDEPOD_ENV" "$env_cache/podman/storage")
    # No name server can be reached: one that refuses at once saves HTCondor 5 s a look-up.
    sed -i '/^\[containers\]/a dns_servers = ["127.0.0.1"]' "$GLIDEPOD_ENV/etc/containers.conf"
    cat >"$GLIDEPOD_ENV/etc/registries.conf" <<EOF
unqualified-search-registries = []

[[registry]]
location = "$env_registry"
insecure = true

[[registry]]
location = "$env_pod_registry"
insecure = true
EOF
    # kill-child: the keeper ends with the process we record, and all else with it.
    # The lock it inherits keeps images/build from removing layers we stand on.
    exec 8>>"$env_cache/in-use"
    flock --shared 8
    setsid unshare --mount --net --pid --fork --kill-child --mount-proc \
        --propagation private sh -c '
            mount -t tmpfs -o mode=755 tmpfs /run && mkdir -p /run/lock &&
            ip link set lo up && exec catatonit -P' \
        </dev/null >"$GLIDEPOD_ENV/log/keeper.log" 2>&1 &
    env_identity $! >"$GLIDEPOD_ENV/owner"
    disown $!
    exec 8>&-
    wait_until 5 "the namespaces" env_find_keeper || return
    [[ -z ${GLIDEPOD_HOOKS:-} ]] || env_use_hooks || return
    [[ ${GLIDEPOD_RUNTIME:-} != crun ]] || env_use_crun || return
    env_say "state is in $GLIDEPOD_ENV"
}

env_find_keeper() {
    local owner keeper
    read -r owner _ <"$GLIDEPOD_ENV/owner"
    keeper=$(tr -d ' ' <"/proc/$owner/task/$owner/children")
    [[ -n $keeper && $(cat "/proc/$keeper/comm") == catatonit ]] || return
    echo "$keeper" >"$GLIDEPOD_ENV/keeper"
}

# A registry that holds the demo images, so that an image that does not exist
# fails with a registry's own words. Nothing outside of the environment reaches it.
env_start_registry() {
    cat >"$GLIDEPOD_ENV/etc/registry.yaml" <<EOF
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: $GLIDEPOD_ENV/registry}
http: {addr: ":${env_registry##*:}"}
validation: {manifests: {urls: {allow: ["^http://"]}}}
compatibility: {schema1: {enabled: true}}
EOF
    env_start registry docker-registry serve "$GLIDEPOD_ENV/etc/registry.yaml" || return
    wait_until 20 "the registry" in_env curl -fsS "http://$env_registry/v2/" || return
    env_fill_registry "$GLIDEPOD_ENV/registry" || return
    env_say "registry $env_registry has ${env_images[*]}"
}

# Puts an image of images/build into the registry.
env_push() { env_podman push --quiet --tls-verify=false "localhost/$1" "$2" >/dev/null; }  # IMAGE NAME

# The pool: central manager and access point in one container, and the tokens it
# issues in tokens/pilot and tokens/provisioner. Its collector answers by itself: to fork for each question is more work.
env_start_pool() {
    env_podman run --detach --quiet --pull never --name pool --hostname pool.example.org \
        --ip "$env_pool_address" --volume "$GLIDEPOD_ENV/tokens:/var/lib/glidepod/tokens" \
        --env _CONDOR_COLLECTOR_QUERY_WORKERS=0 \
        "localhost/$env_pool_image" >/dev/null || return
    env_podman inspect --format '{{.State.Pid}}' pool >"$GLIDEPOD_ENV/pool-pid" || return
    wait_until 60 "the pool" env_pool_ready || return
    env_say "pool at $env_pool_address"
}

# podhost, the pod API over the environment's podman.
env_start_podhost() {
    env_start podhost "$GLIDEPOD_ENV/bin/podhost" --state-dir "$GLIDEPOD_ENV/podhost" \
        --socket "$GLIDEPOD_ENV/podhost.sock" --node-name env --pids-limit 1024 || return  # as tests/e2e/cluster has it
    wait_until 20 "podhost" env_podhost get || return
    env_say "podhost serves $GLIDEPOD_ENV/podhost.sock"
}

# podhost's client: get, create, delete, logs.
env_podhost() { "$GLIDEPOD_ENV/bin/podhost" --socket "$GLIDEPOD_ENV/podhost.sock" "$@"; }

# The pilot pod, changed by a filter of jq.
env_pilot_pod() {  # [FILTER]
    jq --arg image "localhost/$env_pilot_image" \
        ".metadata.name = \"$env_pilot\" | (.spec.initContainers[], .spec.containers[]).image = \$image | ${1:-.}" \
        "$env_source/pilot-pod.json"
}

# Creates a pod from a JSON file, in which /GLIDEPOD_ENV/ stands for the
# environment's folder.
env_create_pod() {  # FILE
    sed "s|/GLIDEPOD_ENV/|$GLIDEPOD_ENV/|g" "$1" | env_podhost create -f - >/dev/null
}

env_delete_pod() {  # NAME [SECONDS]
    env_podhost delete "$1" ${2:+--grace-period "$2"} >/dev/null &&
        wait_until $((${2:-30} + 20)) "the end of pod $1" env_no_pod "$1"
}
env_end_pod() { env_podhost delete "$1" --grace-period "$2" >/dev/null; }  # NAME SECONDS
env_no_pod() { ! env_podhost get "$1"; }

# The pilot pod as the API has it.
env_pod() { env_podhost get "$env_pilot"; }

# What a container of the pilot pod has said; the agent unless another is named.
env_pilot_log() { env_podhost logs "$env_pilot" --container "${1:-pilot}"; }  # [CONTAINER]

# Runs a command in a container of the pilot pod.
env_in_pilot() {  # CONTAINER COMMAND...
    local id
    id=$(env_pod | jq -r --arg name "$1" \
        '.status | (.containerStatuses, .initContainerStatuses)[]? | select(.name == $name).containerID | sub(".*://"; "")')
    shift
    env_podman exec "$id" "$@"
}

env_running() { [[ -n ${GLIDEPOD_ENV:-} && -e $GLIDEPOD_ENV/keeper ]]; }

# The provisioner, with these settings and podhost's API, in a container; its page on port 8080 of env_provisioner_address.
env_start_provisioner() {  # SETTINGS TEMPLATE
    local folder=$GLIDEPOD_ENV/provisioner
    mkdir -p "$folder" && cp "$1" "$folder/provisioner.conf" || return
    sed "s|/GLIDEPOD_ENV/|$GLIDEPOD_ENV/|g" "$2" >"$folder/pilot-pod.json" || return
    env_podman run --detach --quiet --pull never --name provisioner --ip "$env_provisioner_address" \
        --volume "$folder:/etc/provisioner:ro" --volume "$GLIDEPOD_ENV/tokens/provisioner:/etc/condor/tokens.d:ro" \
        --volume "$GLIDEPOD_ENV/podhost.sock:/run/podhost.sock" localhost/glidepod/provisioner:dev \
        run --config /etc/provisioner/provisioner.conf --api-socket /run/podhost.sock --listen :8080 --serve-status >/dev/null ||
        return
    wait_until 30 "the provisioner's first look" env_provisioner status || { env_podman logs provisioner >&2; return 1; }
    env_say "the provisioner watches the queue"
}
env_end_provisioner() { env_podman rm --force --ignore --time 5 provisioner >/dev/null; }
env_provisioner() {  # status|why|plan ARGUMENT...
    env_podman exec provisioner provisioner "$1" --file /run/provisioner/status.json "${@:2}"
}

# Everything but a pilot: BUILD_DIR/bin holds podhost, and images/build has made the images.
env_up_pool() {  # BUILD_DIR
    local build
    build=$(cd "$1" && pwd) || return
    [[ -x $build/bin/podhost ]] || env_die "$build/bin/podhost is missing" || return
    env_init || return
    ln -sfn "$build/bin" "$GLIDEPOD_ENV/bin"
    env_podman image exists "localhost/$env_pilot_image" && env_podman image exists "localhost/$env_pool_image" ||
        env_die "no $env_pilot_image or $env_pool_image yet: images/build --binaries $build/bin [--suite sid]" || return
    env_start_registry && env_start_pool && env_start_podhost
}
env_up() {  # BUILD_DIR [FILTER]
    env_up_pool "$1" && env_pilot_pod "${2:-.}" >"$GLIDEPOD_ENV/$env_pilot.json" &&
        env_start_pilot "$GLIDEPOD_ENV/$env_pilot.json"
}

# Ends everything and removes the folder. GLIDEPOD_KEEP=1 keeps it, for its logs.
env_down() {
    trap '' INT TERM HUP  # whoever interrupts twice still leaves nothing behind
    local owner start cgroup cgroups
    [[ -n ${GLIDEPOD_ENV:-} && -e $GLIDEPOD_ENV/owner ]] || return 0
    cgroups=$(env_cgroups)
    read -r owner start <"$GLIDEPOD_ENV/owner"
    if [[ -e /proc/$owner && $(env_identity "$owner") == "$owner $start" ]]; then
        [[ ! -e $GLIDEPOD_ENV/log/podhost.pid ]] || env_stop podhost
        if [[ -s $GLIDEPOD_ENV/keeper ]]; then
            env_podman pod rm --all --force --time 0 >/dev/null 2>&1
            env_podman rm --all --force --time 0 >/dev/null 2>&1
        fi
        kill -KILL "$owner"
        wait_until 20 "the environment's end" env_owner_gone "$owner" "$start"
    fi
    # Podman on hybrid cgroups leaves some, and all when it had no time. What was killed may still be in one, and
    # another may have begun meanwhile.
    for cgroup in $({ echo "$cgroups"; env_cgroups; } | sort -u); do
        wait_until 10 "the end of $cgroup" env_remove_cgroup "$cgroup"
    done
    rm -f "$GLIDEPOD_ENV/owner"
    [[ -n ${GLIDEPOD_KEEP:-} ]] || rm -rf --one-file-system "$GLIDEPOD_ENV"
}

# The cgroups of our containers, or of the pods around them.
env_cgroups() {
    local id folder
    for id in "$GLIDEPOD_ENV"/storage/overlay-containers/*/; do
        id=$(basename "$id")
        [[ ${#id} == 64 ]] || continue
        find /sys/fs/cgroup -type d -path "*/libpod_parent/*$id" -prune 2>/dev/null
    done | while read -r folder; do
        [[ $folder == */libpod_parent/libpod-* ]] || folder=$(dirname "$folder")
        echo "$folder"
    done | sort -u
}

env_remove_cgroup() {  # FOLDER
    [[ ! -e $1 ]] || find "$1" -depth -type d -exec rmdir {} \; 2>/dev/null
    [[ ! -e $1 ]]
}

env_owner_gone() {  # PID START
    [[ ! -e /proc/$1 || $(env_identity "$1") != "$1 $2" ]]
}

# image-store beside podhost, and what the pilot's pod needs of it: a filter for jq.
env_start_image_store() {  # [OPTION...]
    mkdir -p "$GLIDEPOD_ENV/store" &&
        env_start image-store "$GLIDEPOD_ENV/bin/image-store" serve --socket "$GLIDEPOD_ENV/store/socket" --folder "$GLIDEPOD_ENV/image-store" "$@" &&
        wait_until 10 "image-store" grep -q event=ready "$GLIDEPOD_ENV/log/image-store.log"
}
env_image_store() {
    cat <<'EOF_FILTER'
.spec.volumes += [{name: "store", hostPath: {path: "/GLIDEPOD_ENV/store", type: "Directory"}}]
    | .spec.containers[0].volumeMounts += [{name: "store", mountPath: "/run/image-store"}]
    | .spec.containers[0].env += [{name: "GLIDEPOD_IMAGE_STORE", value: "/run/image-store/socket"}]
EOF_FILTER
}
