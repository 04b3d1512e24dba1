# shellcheck shell=bash
# Debian packages that building and the unit tests need. Sourced.

source "$(dirname "${BASH_SOURCE[0]}")/../images/containers.sh"

build_packages() {
    debian_packages ca-certificates g++ cmake ninja-build pkg-config libcurl4-openssl-dev libssl-dev nlohmann-json3-dev \
        libseccomp-dev libcap-dev libspdlog-dev libfmt-dev doctest-dev libcpp-httplib-dev libcli11-dev
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
