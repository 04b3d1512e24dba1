# shellcheck shell=bash
# Podman with storage, configuration and locks of its own, sourced by
# images/build and tests/env. The machine's own podman never sees it.

# Prints the containers.conf this machine needs. Without CAP_SYS_RESOURCE the
# ulimits of a container must not exceed our own hard limits, and podman lowers
# its own nproc to 32768 before it starts one. crun refuses hybrid cgroups.
containers_conf() {  # TMP_DIR NETWORK_DIR
    local nofile nproc runtime=""
    nofile=$(ulimit -Hn)
    nproc=$(ulimit -Hu)
    [[ $nofile != unlimited ]] || nofile=1048576
    [[ $nproc != unlimited && $nproc -lt 32768 ]] || nproc=32768
    if [[ $(stat -fc %T /sys/fs/cgroup) != cgroup2fs ]]; then
        runtime='runtime = "runc"'
    fi
    cat <<EOF
[containers]
default_ulimits = ["nofile=$nofile:$nofile", "nproc=$nproc:$nproc"]
log_driver = "k8s-file"

[engine]
$runtime
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "$1"

[network]
network_config_dir = "$2"
EOF
}

# Prints a storage.conf; with a second store its images are used read-only.
containers_storage_conf() {  # GRAPHROOT RUNROOT [ADDITIONAL_STORE]
    cat <<EOF
[storage]
driver = "overlay"
graphroot = "$1"
runroot = "$2"

[storage.options]
additionalimagestores = [${3:+\"$3\"}]
EOF
}

# Writes both files to DIR/etc and exports the variables that select them.
# State lives in DIR/run and DIR/storage.
containers_use() {  # DIR [ADDITIONAL_STORE]
    local dir=$1
    mkdir -p "$dir"/{etc,run/libpod,run/storage,storage,networks}
    containers_conf "$dir/run/libpod" "$dir/networks" >"$dir/etc/containers.conf"
    containers_storage_conf "$dir/storage" "$dir/run/storage" ${2:+"$2"} >"$dir/etc/storage.conf"
    export CONTAINERS_CONF=$dir/etc/containers.conf
    export CONTAINERS_STORAGE_CONF=$dir/etc/storage.conf
}

# Installs the Debian packages among the arguments that are missing.
debian_packages() {
    local package missing=() states
    # It fails where one of them has never been heard of, and who sources this may end by that.
    states=$(dpkg-query -Wf '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null) || true
    for package in "$@"; do
        [[ $'\n'$states$'\n' == *$'\n'"installed $package"$'\n'* ]] || missing+=("$package")
    done
    ((${#missing[@]})) || return 0
    echo "installing: ${missing[*]}" >&2
    # Others of ours may install too; apt-get waits for nobody.
    local lists=(/var/lib/apt/lists/*_Packages*) lock=/run/lock/glidepod-packages
    if [[ ! -e ${lists[0]} || -n $(find /var/lib/apt/lists -maxdepth 0 -mtime +0) ]]; then
        flock "$lock" apt-get update -qq >&2
    fi
    DEBIAN_FRONTEND=noninteractive flock "$lock" apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" >&2
}
