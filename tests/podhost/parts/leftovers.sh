# shellcheck shell=bash
# After the last pod is deleted nothing of any is left; --stop-pods deletes all on SIGTERM.

env_stop podhost
start_podhost --stop-pods
create last '.spec.initContainers = [container("i"; "true")] | .spec.volumes = [{name: "m", emptyDir: {medium: "Memory"}}, {name: "e"}]
    | .spec.containers[0].volumeMounts = [{name: "m", mountPath: "/m"}, {name: "e", mountPath: "/e", subPath: "x"}]'
create held '.spec.containers[0].image = "127.0.0.1:1/none:1"'
runs last
ids=$(env_podman pod ps --quiet --no-trunc; env_podman ps --all --quiet --no-trunc)
check "there is something to leave" test "$(wc -w <<<"$ids")" -ge 3
env_stop podhost
check "--stop-pods: no pod is left" equal "$(ls "$GLIDEPOD_ENV/podhost/pods")" ""
start_podhost
check "  nor comes back" equal "$(call GET /api/v1/pods && field '.items | length')" 0
env_stop podhost
check "no container" equal "$(env_podman ps --all --quiet)" ""
check "no podman pod" equal "$(env_podman pod ps --quiet)" ""
check "no volume" equal "$(env_podman volume ls --quiet)" ""
check "no process" equal "$(in_env ps -eo args= | grep -E 'conmon|sleep|podman|podhost' | grep -v -e 'grep -E' -e 'ps -eo')" ""
# podman takes a pod's network down beside its removal.
mounts() { in_env cut -d' ' -f2 /proc/self/mounts | grep -e "^$GLIDEPOD_ENV/podhost/" -e "^$GLIDEPOD_ENV/.*/merged" -e "^$GLIDEPOD_ENV/.*/shm" -e "/netns/netns-"; }
interfaces() { in_env ip -o link | grep veth; }
wait_until 30 "the end of the pods' networks" eval '! mounts && ! interfaces'
check "no mount" equal "$(mounts)" ""
check "no network interface of a pod" equal "$(interfaces)" ""
check "no cgroup" equal "$(find /sys/fs/cgroup -type d | grep -F -e "$ids")" ""
check "no file but its own" equal "$(cd "$GLIDEPOD_ENV/podhost" && find . -mindepth 1 | sort | paste -sd' ')" "./kubeconfig ./lock ./pods ./token"
check "no descriptor leaked: podhost did not warn" equal "$(grep -c 'event=accept_failed' "$GLIDEPOD_ENV/log/podhost.log")" 0
