# shellcheck shell=bash
# podhost ends and comes back, podman goes away, and somebody removes things behind podhost's back.

ids() { of_pod "$1" '[.metadata.uid, (.status.containerStatuses[] | .containerID, .restartCount)] | map(tostring) | join(" ")'; }  # POD
main_pid() { in_env sh -c "pgrep -f '^sleep $1\$' | head -1"; }  # SECONDS
sleeper() { echo ".spec.restartPolicy = \"$2\" | .spec.shareProcessNamespace = true | .spec.containers[0].command = [\"sleep\", \"$1\"]"; }  # SECONDS POLICY
create stays "$(sleeper 2001 OnFailure) | .spec.containers += [container(\"side\"; \"sleep 2002\")]"
create ends "$(sleeper 2003 OnFailure)"
create ends-never "$(sleeper 2004 Never)"
create vanishes "$(sleeper 2005 OnFailure)"
create removed "$(sleeper 2006 OnFailure)"
create finished '.spec.restartPolicy = "Never" | .spec.containers[0].command = ["true"]'
for name in stays ends ends-never vanishes removed; do runs "$name"; done
pod_comes_to 10 finished .status.phase Succeeded
call PATCH "$pods/stays" '{"spec": {"containers": [{"name": "side", "image": "localhost/demo/busybox:2"}]}}' application/strategic-merge-patch+json
container_comes_to 15 stays .restartCount 1 side
for signal in TERM KILL; do
    before=$(ids stays)
    ends_before=$(of_container ends .restartCount)
    call GET "$pods"
    version=$(field .metadata.resourceVersion)
    env_stop podhost "$signal"
    check "SIG$signal: the pods run on" processes 1 "sleep 2001"
    # While podhost is away one container ends, one is removed, and one pod is.
    in_env kill -KILL "$(main_pid 2003)"
    if [[ $signal == KILL ]]; then
        in_env kill -KILL "$(main_pid 2004)"
        env_podman rm --force --time 0 "$(of_container_file vanishes)" >/dev/null 2>&1
        env_podman pod rm --force --time 0 "$(of_pod_file removed)" >/dev/null 2>&1
        check "the API is away" contains "$(env_podhost get 2>&1)" "podhost.sock"
    fi
    # The host may have another name by then.
    [[ $signal == TERM ]] && node="renamed" || node="env"
    start_podhost
    podhost_pid=$(in_env_pid podhost)
    check "SIG$signal: a new podhost has the same pods, containers and counts" equal "$(ids stays)" "$before"
    check "  what ended meanwhile starts again" container_comes_to 15 ends .restartCount $((ends_before + 1))
    check "  and is told of" equal "$(of_container ends '.lastState.terminated.exitCode')" 137
    call GET "$pods?watch=true&resourceVersion=$version"
    check "  a watch from before is too old" is_status 410 Expired "too old resource version"
    check "  the finished pod is as it was" pod_is finished .status.phase Succeeded
done
check "Never: what ended meanwhile has failed" pod_comes_to 10 ends-never '"\(.status.phase) \(.status.containerStatuses[0].state.terminated.exitCode) \(.status.containerStatuses[0].restartCount)"' "Failed 137 0"
check "a container removed meanwhile counts as ended, nobody knows how" container_comes_to 15 vanishes '"\(.restartCount) \(.lastState.terminated.reason)"' "1 ContainerStatusUnknown"
check "a pod removed meanwhile has failed, as if its node were lost" pod_comes_to 10 removed '"\(.status.phase) \(.status.reason) \(.status.containerStatuses[0].state.terminated.reason)"' "Failed NodeLost ContainerStatusUnknown"

# The same while podhost looks on.
create removed-now "$(sleeper 2007 OnFailure)"
create always "$(sleeper 2008 Always)"
create infra-dies "$(sleeper 2009 OnFailure)"
for name in removed-now always infra-dies; do runs "$name"; done
env_podman pod rm --force --time 0 "podhost-$(of_pod removed-now .metadata.uid)" >/dev/null
check "a pod removed behind podhost's back has failed" pod_comes_to 10 removed-now '"\(.status.phase) \(.status.reason)"' "Failed NodeLost"
check "  and nothing of it is made again" processes 0 "sleep 2007"
env_podman rm --force --time 0 "$(of_container always '.containerID | sub("podman://"; "")')" >/dev/null
check "a container removed behind podhost's back starts again" container_comes_to 15 always '.restartCount >= 1 and .state.running != null' true
in_env kill -KILL "$(env_podman inspect --format '{{.State.Pid}}' "$(env_podman pod inspect --format '{{.InfraContainerID}}' "podhost-$(of_pod infra-dies .metadata.uid)")")"
check "a pod whose sandbox died gets a new one" container_comes_to 15 infra-dies '.restartCount >= 1 and .state.running != null' true
check "  the same pod" runs infra-dies

# podman's service dies, then hangs.
before=$(ids stays)
podman_pid() { pgrep -P "$podhost_pid" -x podman; }
old=$(podman_pid)
kill -KILL "$old"
create meanwhile
check "podman's service dies: it comes back by itself" runs meanwhile
check "  another one" test "$(podman_pid)" != "$old"
check "  the pods were not touched" equal "$(ids stays)" "$before"
kill -STOP "$(podman_pid)"
create waits
in_env kill -KILL "$(main_pid 2003)"
call GET "$pods/waits"
check "podman hangs: the API answers" equal "$code $(field .status.phase)" "200 Pending"
call DELETE "$pods/meanwhile?gracePeriodSeconds=0"
check "  a delete is accepted" equal "$code" 200
restarts=$(of_container ends .restartCount)
kill -KILL "$(podman_pid)"
check "once it answers again, what waited goes on" runs waits
check "  what ended is told right and starts again" container_comes_to 15 ends '"\(.restartCount) \(.lastState.terminated.reason)"' "$((restarts + 1)) Error"
check "  what was to be deleted is gone" wait_until 10 "the end of meanwhile" gone meanwhile
in_env kill -KILL "$(conmon_of always)"
in_env kill -KILL "$(main_pid 2008)"
check "a container whose conmon was killed is not taken for a success" container_comes_to 25 always '"\(.lastState.terminated.exitCode == 0) \(.state.running != null)"' "false true"
check "all of these can be deleted" delete_all
