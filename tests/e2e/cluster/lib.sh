# shellcheck shell=bash
# What build, up, down and smoke share. Sourced after `set -euo pipefail`.

cluster_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$cluster_dir/../../../images/containers.sh"  # debian_packages

source "$cluster_dir/programs.sh"
default_state=/var/tmp/glidepod-cluster

say() { printf '%s: %3d s  %s\n' "${0##*/}" "$SECONDS" "$*" >&2; }
die() { say "$*"; exit 1; }

set -o errtrace
trap 'say "failed: $BASH_COMMAND (${BASH_SOURCE[0]##*/}, line $LINENO)"' ERR

# Makes an apt of its own in DIR: with the machine's Debian mirror and keys, for
# source packages or another suite, and nothing under /etc or /var touched. The
# options that select it are in the array private_apt.
private_apt() {  # DIR TYPE [SUITE]
    local dir=$1 type=$2 suite=${3-} release file
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mkdir -p "$dir"/{parts,lists/partial,cache/archives/partial}
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        [[ -r $file ]] || continue
        case $file in
            *.list)
                sed -nE "s/^deb +((\[[^]]*\] +)?[^ ]+) ($release${suite:+ }.* ?main.*)/$type \1 \3/p" "$file" |
                    sed -E "${suite:+s/ $release / $suite /}" >>"$dir/parts/debian.list"
                ;;
            *.sources)
                sed '/^#/d' "$file" | awk -v release="$release" -v type="$type" -v suite="$suite" '
                    BEGIN { RS = ""; end = suite == "" ? "" : "( |\n|$)" }
                    $0 ~ "(^|\n)Suites:([^\n]*) " release end && /Components:[^\n]* main/ && !/Enabled: *no/ {
                        sub(/Types:[^\n]*/, "Types: " type)
                        if (suite != "") sub(/Suites:[^\n]*/, "Suites: " suite)
                        print $0 "\n"
                    }' >>"$dir/parts/debian.sources"
                ;;
        esac
    done
    [[ -n $(cat "$dir"/parts/*) ]] || die "no apt sources of Debian $release on this machine"
    private_apt=(
        -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$dir/parts"
        -o "Dir::State::Lists=$dir/lists" -o "Dir::Cache=$dir/cache" -o APT::Sandbox::User=root
    )
}

# Puts the programs of a cluster first into PATH: those that DIR has, else what `build` makes and Debian has. How they
# are configured depends on whose they are: k8s_minor is the Y of Kubernetes 1.Y, containerd_major the X of X.Y.
find_programs() {  # [DIR]
    local program dir=${1-} own=() others=0
    if [[ -n $dir ]]; then
        for program in "${k8s_programs[@]}"; do [[ ! -x $dir/$program ]] || own+=("$program"); done
        for program in kubectl "${debian_programs[@]}"; do [[ ! -x $dir/$program ]] || others=$((others + 1)); done
        ((${#own[@]} + others)) || die "$dir has no program of a cluster"
    fi
    case ${#own[@]} in
        0) "$cluster_dir/build" ;;
        "${#k8s_programs[@]}") [[ -x $dir/kubectl ]] || "$cluster_dir/build" --kubectl ;;
        *) die "$dir must have all or none of ${k8s_programs[*]}" ;;
    esac
    export PATH=${dir:+$dir:}$k8s_dir:$PATH
    k8s_minor=$(kubelet --version | sed -nE 's/^Kubernetes v1\.([0-9]+)\..*/\1/p')
    export k8s_minor  # for node
    [[ -n $k8s_minor ]] || die "$(type -P kubelet) does not say which Kubernetes it is of"
    containerd_major=$(containerd --version | sed -nE 's/^containerd [^ ]+ v?([0-9]+)\..*/\1/p')
    [[ -n $containerd_major ]] || die "$(type -P containerd) does not say its version"
    ((k8s_minor >= 23 || containerd_major < 2)) || die "Kubernetes 1.$k8s_minor knows no containerd $containerd_major"
}

# Runs a command until it succeeds; fails when the deadline has passed.
wait_until() {  # SECONDS COMMAND...
    local deadline=$((SECONDS + $1))
    shift
    until "$@" &>/dev/null; do
        ((SECONDS < deadline)) || return 1
        sleep 0.2
    done
}

# The moment a process started, in clock ticks since boot: with its pid it names
# the process for good. Fails if there is no such process (a zombie is none).
start_time() {  # PID
    local line fields
    { line=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    read -ra fields <<<"${line##*) }"
    [[ ${fields[0]} != [ZX] ]] || return 1
    echo "${fields[19]}"
}

# The recorded process "PID START_TIME" is still alive.
alive() {  # FILE
    local pid start
    read -r pid start 2>/dev/null <"$1" || return 1
    [[ $(start_time "$pid") == "$start" ]]
}

# The folder of a cluster, made by up and removed by down. Its programs see other
# folders at /run, /var/lib and /var/log.
check_state() {  # DIR [DIR_OF_PROGRAMS]
    local dir
    for dir in "$1" "$k8s_dir" "${@:2}"; do
        case $dir/ in
            /run/* | /var/lib/* | /var/log/*) die "$dir must not lie beneath /run, /var/lib or /var/log" ;;
            *:*) die "$dir must have no colon" ;;
            /*) ;;
            *) die "$dir must be an absolute path" ;;
        esac
    done
    [[ ! -e $1 || -e $1/.glidepod-cluster ]] || die "$1 exists and is not a cluster's folder"
}

# Where cgroup hierarchies are mounted: one each for v1 controllers, or just one.
cgroup_mounts() {
    awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts | sort -u
}

# Fails while one is in use.
remove_cgroups() {  # ID
    local mount left=0
    while read -r mount; do
        [[ -d $mount/$1 ]] || continue
        find "$mount/$1" -depth -type d -exec rmdir {} + 2>/dev/null || left=1
    done < <(cgroup_mounts)
    return "$left"
}

# Writes a container image of one layer as an archive that ctr and skopeo read.
write_image() {  # FILE NAME ROOT_DIR COMMAND...
    local file=$1 name=$2 root=$3 dir layer
    shift 3
    dir=$(mktemp -d)
    tar -C "$root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$dir/layer.tar" .
    layer=$(sha256sum "$dir/layer.tar" | cut -d' ' -f1)
    jq -n --arg layer "sha256:$layer" --arg arch "$(dpkg --print-architecture)" '{
            architecture: $arch, os: "linux", rootfs: {type: "layers", diff_ids: [$layer]},
            config: {Entrypoint: $ARGS.positional, Env: ["PATH=/bin"]}
        }' --args -- "$@" >"$dir/config.json"
    jq -n --arg name "$name" \
        '[{Config: "config.json", RepoTags: [$name], Layers: ["layer.tar"]}]' >"$dir/manifest.json"
    tar -C "$dir" -cf "$file" manifest.json config.json layer.tar
    rm -r "$dir"
}
