# shellcheck shell=bash
# What the files of tests/steps share. Each sources it first. run-tests says what their headers mean.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
source tests/packages.sh
compile_once
# The program that runs when Ctrl-C comes ends by itself, and cleans up. The step waits for that.
trap : INT TERM

# For a step without the part that is asked for.
no_part() { echo "${0##*/}: no part $1" >&2; return 2; }  # PART

# Runs commands one after the other, also after one that fails; none after an interrupt. Fails if one of them failed.
each() {  # "COMMAND ARGUMENT..."...
    local code=0 command
    for command in "$@"; do
        # shellcheck disable=SC2086  # words
        $command || code=$?
        ((code < 128)) || break
    done
    return $code
}

# What is measured is built as it is released.
build_release() { cmake --preset release && cmake --build --preset release && images/build --binaries build/release/bin; }
