# shellcheck shell=bash
# The command line: help, version, exit codes, what keeps podhost from starting.

podhost() { in_env timeout 15 "$GLIDEPOD_ENV/bin/podhost" "$@" 2>&1; }
exits() {  # CODE WORDS COMMAND...
    local code=$1 words=$2 output got
    shift 2
    output=$("$@")
    got=$?
    equal "$got" "$code" && contains "$output" "$words"
}
other=$GLIDEPOD_ENV/other
podhost_as_nobody() { in_env setpriv --reuid 65534 --regid 65534 --clear-groups "$GLIDEPOD_ENV/bin/podhost" --state-dir "$other" 2>&1; }
env_podhost_all() { env_podhost "$@" 2>&1; }
starts_with_deaf_podman() {
    local pid began=$SECONDS
    printf '#!/bin/sh\nexec sleep 60\n' >"$other.podman"
    chmod +x "$other.podman"
    env_start deaf "$GLIDEPOD_ENV/bin/podhost" --state-dir "$other" --socket "$other.sock" --podman "$other.podman"
    wait_until 5 "podhost" grep -q "event=podman_started" "$GLIDEPOD_ENV/log/deaf.log"
    env_stop deaf && ((SECONDS - began < 5))
}

check "--help" exits 0 "Exit codes" podhost --help
check "--version" exits 0 "podhost 0." podhost --version
check "an unknown option" exits 2 "--nope" podhost --nope
check "a port out of range" exits 2 "--port" podhost --port 65536
check "a subcommand without its argument" exits 2 "name" podhost delete
check "a client without a daemon" exits 1 "/nowhere.sock" podhost --socket /nowhere.sock get
check "not as root" exits 1 "must run as root" podhost_as_nobody
check "a state directory in use" exits 1 "is in use by another podhost" podhost --state-dir "$GLIDEPOD_ENV/podhost" --socket "$other.sock"
check "no podman" exits 1 "/nowhere/podman system service: exit code 127" podhost --state-dir "$other" --socket "$other.sock" --podman /nowhere/podman
check "a podman that is none" exits 1 "system service: exit code 0" podhost --state-dir "$other" --socket "$other.sock" --podman true
check "a socket where there is no folder" exits 1 "/nowhere" podhost --state-dir "$other" --socket /nowhere/podhost.sock
check "a podman that never answers: SIGTERM ends the start" starts_with_deaf_podman
check "no socket is left behind" equal "$(ls "$GLIDEPOD_ENV"/*.sock)" "$GLIDEPOD_ENV/podhost.sock"

check "create by the client" equal "$(pod by-client | env_podhost create -f -)" "pod/by-client created"
check "a file that is none" exits 1 "/nowhere" env_podhost_all create -f /nowhere
check "what is refused" exits 1 "already exists" env_podhost_all create -f <(pod by-client)
runs by-client
check "get lists it" contains "$(env_podhost get)" "by-client                                1/1   Running              0"
check "get prints it" equal "$(env_podhost get by-client | jq -r .metadata.name)" by-client
check "get of none" exits 1 'pods "nope" not found' env_podhost_all get nope
check "delete" equal "$(env_podhost delete by-client --grace-period 0)" "pod/by-client deleted"
check "  and gone" wait_until 15 "the end of by-client" gone by-client
