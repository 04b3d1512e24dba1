# shellcheck shell=bash
# Debian packages that building and the unit tests need. Sourced.

source "$(dirname "${BASH_SOURCE[0]}")/../images/containers.sh"

build_packages() {
    debian_packages ca-certificates g++ cmake ninja-build pkg-config libcurl4-openssl-dev libssl-dev nlohmann-json3-dev \
        libseccomp-dev libcap-dev libspdlog-dev libfmt-dev doctest-dev libcpp-httplib-dev libcli11-dev
}
