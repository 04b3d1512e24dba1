# shellcheck shell=bash
# What building and the unit tests need. Sourced.

source "$(dirname "${BASH_SOURCE[0]}")/../images/containers.sh"

# Their Debian packages.
build_packages() {
    local packages
    mapfile -t packages < <(tr ' ' '\n' <"$(dirname "${BASH_SOURCE[0]}")/../images/build-packages")
    debian_packages ccache doctest-dev "${packages[@]}" && compile_once
}

# What was compiled is kept, also for the next clone. Who has a launcher of his own, or an empty one, keeps that; so does
# a folder that was configured before.
compile_once() {
    [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER+set} ]] || return 0
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR=${GLIDEPOD_CACHE:-/var/cache/glidepod}/ccache CCACHE_MAXSIZE=4G
    # Paths of the clone are none of the content.
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
}

# Builds targets in build/dev: one at a time, whoever else wants some.
build_dev() {  # TARGET...
    mkdir -p build && flock build/dev.lock sh -c 'cmake --preset dev && cmake --build --preset dev --target "$@"' sh "$@"
}

# Where Prometheus' programs are: its package would start a server.
prometheus_programs() {
    local folder=${GLIDEPOD_CACHE:-/var/cache/glidepod}/promtool
    if [[ ! -x $folder/usr/bin/promtool ]]; then
        rm -rf "$folder.new"
        mkdir -p "$folder.new" && (cd "$folder.new" && apt-get -q download prometheus && dpkg-deb -x prometheus_*.deb . &&
            rm prometheus_*.deb) >&2 && mv -T "$folder.new" "$folder" || return
    fi
    echo "$folder/usr/bin"
}
promtool() { local programs; programs=$(prometheus_programs) && "$programs/promtool" "$@"; }  # ARGUMENTS...
