# shellcheck shell=bash
# What a pod does: init containers, restartPolicy, phases, volumes, namespaces, users, limits. All at once, then each.

ends() { echo ".spec.restartPolicy = \"$1\" | .spec.containers[0].command = sh(\"exit $2\")"; }  # POLICY CODE
create always-0 "$(ends Always 0)"
create always-1 "$(ends Always 7)"
create failure-0 "$(ends OnFailure 0)"
create failure-1 "$(ends OnFailure 7)"
create never-0 "$(ends Never 0)"
create never-1 "$(ends Never 7)"
create init '.spec.initContainers = [container("first"; "sleep 1; echo first >/v/order"), container("second"; "echo second >>/v/order")]
    | .spec.containers[0].command = sh("cat /v/order; sleep 1000") | .spec.volumes = [{name: "v"}]
    | (.spec.initContainers[], .spec.containers[]).volumeMounts = [{name: "v", mountPath: "/v"}]'
create init-fails '.spec.restartPolicy = "Never" | .spec.initContainers = [container("first"; "exit 3"), container("second"; "true")]'
create init-retries '.spec.initContainers = [container("first"; "echo x >>/v/tries; test $(wc -l </v/tries) = 2")] | .spec.volumes = [{name: "v"}]
    | .spec.initContainers[0].volumeMounts = [{name: "v", mountPath: "/v"}]'
create helped '.spec.restartPolicy = "Never" | .spec.volumes = [{name: "v"}]
    | .spec.initContainers = [(container("again"; "echo again >>/v/order; sleep 2"),
        container("runs"; "echo runs >>/v/order; trap \"exit 9\" TERM; while :; do sleep 0.1; done")) | .restartPolicy = "Always"]
    | .spec.containers[0].command = sh("cat /v/order; sleep 6")
    | (.spec.initContainers[], .spec.containers[]).volumeMounts = [{name: "v", mountPath: "/v"}]'

mkdir -p "$GLIDEPOD_ENV/host/sub" && echo host >"$GLIDEPOD_ENV/host/sub/file"
create volumes '.spec.shareProcessNamespace = true | .metadata.annotations = {note: "n"}
    | .spec.volumes = [{name: "e", emptyDir: {}}, {name: "m", emptyDir: {medium: "Memory", sizeLimit: "1Mi"}},
        {name: "h", hostPath: {path: "'"$GLIDEPOD_ENV/host"'", type: "Directory"}},
        {name: "d", projected: {sources: [{downwardAPI: {items: [{path: "labels", fieldRef: {fieldPath: "metadata.labels"}}]}}]}}]
    | .spec.containers[0] |= (.volumeMounts = [{name: "e", mountPath: "/e"}, {name: "e", mountPath: "/deep", subPath: "a/b"},
        {name: "m", mountPath: "/m"}, {name: "h", mountPath: "/h", subPath: "sub"}, {name: "d", mountPath: "/d"}]
      | .env = [{name: "NODE", valueFrom: {fieldRef: {fieldPath: "spec.nodeName"}}}, {name: "IP", valueFrom: {fieldRef: {fieldPath: "status.podIP"}}},
        {name: "NOTE", valueFrom: {fieldRef: {fieldPath: "metadata.annotations[\u0027note\u0027]"}}}, {name: "BOTH", value: "$(NODE)-$(NOTE)-$(NONE)"}])
    | .spec.containers += [container("reader"; "sleep 1000") | .volumeMounts = [{name: "e", mountPath: "/e", readOnly: true}]]'
create secure '.spec.containers = [
    (container("user"; "id -u; id -g; sleep 1000") | .securityContext = {runAsUser: 1234, runAsGroup: 1235}),
    (container("bare"; "sleep 1000") | .securityContext = {capabilities: {drop: ["ALL"], add: ["KILL"]}, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true}),
    container("plain"; "sleep 1000")] | .spec.securityContext = {supplementalGroups: [77], fsGroup: 78}'
create limited '.spec.restartPolicy = "Never" | .spec.containers[0].command = sh("sleep 1; exec tail /dev/zero") | .spec.containers += [container("calm"; "echo $MB; sleep 1000")]
    | .spec.containers[] |= (.resources = {limits: {cpu: "250m", memory: "24Mi"}} | .env = [{name: "MB", valueFrom: {resourceFieldRef: {resource: "limits.memory", divisor: "1Mi"}}}])'
create words '.spec.restartPolicy = "Never" | .spec.containers = [
    container("file"; "echo my last words >/dev/termination-log; exit 5"),
    (container("logs"; "echo from the log; exit 6") | .terminationMessagePolicy = "FallbackToLogsOnError")]'

container_ended() { container_comes_to 15 "$1" '.state.terminated | "\(.exitCode) \(.reason)"' "$2" "${3:-main}"; }  # POD "CODE REASON" [CONTAINER]
check "Never, exit 0: Completed" container_ended never-0 "0 Completed"
check "  Succeeded" pod_comes_to 5 never-0 .status.phase Succeeded
check "Never, exit 7: Error" container_ended never-1 "7 Error"
check "  Failed" pod_comes_to 5 never-1 .status.phase Failed
check "OnFailure, exit 0: Succeeded" pod_comes_to 10 failure-0 .status.phase Succeeded
check "OnFailure, exit 7: again" container_comes_to 15 failure-1 '.restartCount >= 2' true
check "  held back" container_comes_to 15 failure-1 '"\(.state.waiting.reason) \(.lastState.terminated.exitCode)"' "CrashLoopBackOff 7"
check "  in the kubelet's words" contains "$(of_container failure-1 .state.waiting.message)" "restarting failed container=main pod=failure-1_default("
check "  still Running" pod_is failure-1 .status.phase Running
check "Always, exit 7: again" container_comes_to 15 always-1 '.restartCount >= 2' true
check "Always, exit 0: again" container_comes_to 15 always-0 '.restartCount >= 2' true
check "  the times of a run are in order" equal "$(of_container always-0 '.lastState.terminated | .startedAt <= .finishedAt')" true

check "init containers run in order" wait_until 15 "its log" log_has init $'first\nsecond'
check "  Initialized, Completed" equal "$(of_pod init '[(.status.conditions[] | select(.type == "Initialized").status), .status.initContainerStatuses[].state.terminated.reason] | join(" ")')" "True Completed Completed"
check "  an init container that fails for good ends the pod" pod_comes_to 10 init-fails '"\(.status.phase) \(.status.initContainerStatuses[0].state.terminated.exitCode) \(.status.containerStatuses[0].state.waiting.reason)"' "Failed 3 PodInitializing"
check "  one that may try again does" runs init-retries
check "  and counts it" equal "$(of_container init-retries .restartCount first)" 1
check "sidecars begin in order, then the containers" wait_until 15 "its log" log_has helped $'again\nruns'
check "  one that ends starts again, whatever restartPolicy says" container_comes_to 15 helped '.restartCount >= 1' true again
check "  the pod ends as its containers have" pod_comes_to 20 helped .status.phase Succeeded
check "  and sidecars have ended after them" equal "$(of_container helped '.state.terminated.exitCode' runs)" 9

# By itself, so that it has begun long before.
create deadline '.spec.activeDeadlineSeconds = 8'
runs volumes
check "emptyDir is shared" equal "$(in_pod volumes main sh -c 'echo shared >/e/x' && in_pod volumes reader cat /e/x)" shared
check "  read-only where it says so" contains "$(in_pod volumes reader touch /e/y 2>&1)" "Read-only"
check "subPath makes its folders" equal "$(in_pod volumes main sh -c 'echo deep >/deep/x' && in_pod volumes reader cat /e/a/b/x)" deep
check "medium Memory, of its size" equal "$(in_pod volumes main sh -c 'df /m | tail -1 | tr -s " " | cut -d" " -f1,2')" "tmpfs 1024"
check "hostPath with subPath" equal "$(in_pod volumes main cat /h/file)" host
check "labels as a file" equal "$(in_pod volumes main cat /d/labels)" 'app="test"'
check "  that the pod cannot change" contains "$(in_pod volumes main touch /d/x 2>&1)" "Read-only"
check "fieldRef and \$(NAME)" equal "$(in_pod volumes main sh -c 'echo $NODE $IP $BOTH')" "env $(of_pod volumes .status.podIP) env-n-\$(NONE)"
check "one PID namespace" contains "$(in_pod volumes reader ps -o args)" "sleep 1000"
check "  of its own" equal "$(in_pod secure plain ps -o args | grep -c catatonit)" 0

runs secure
status() { in_pod secure "$1" sed -n "s/^$2:\t//p" /proc/1/status; }  # CONTAINER FIELD
check "runAsUser, runAsGroup" equal "$(log_of secure user)" $'1234\n1235'
check "supplementalGroups, fsGroup" contains " $(status user Groups)" " 77 78"
check "capabilities: drop ALL, add KILL" equal "$(status bare CapBnd) $(status bare CapEff)" "0000000000000020 0000000000000020"
check "  more than that by default" test "$(status plain CapBnd)" != 0000000000000020
check "allowPrivilegeEscalation false: no_new_privs" equal "$(status bare NoNewPrivs) $(status plain NoNewPrivs)" "1 0"
check "a seccomp filter for all" equal "$(status bare Seccomp) $(status plain Seccomp)" "2 2"
check "readOnlyRootFilesystem" contains "$(in_pod secure bare touch /x 2>&1)" "Read-only"

# With cgroups of version 1 podman itself does not learn of it.
[[ $(stat -fc %T /sys/fs/cgroup) == cgroup2fs ]] && killed=OOMKilled || killed=Error
check "memory limit: $killed" container_ended limited "137 $killed"
limit=$(find /sys/fs/cgroup -path "*$(of_container limited '.containerID | sub("podman://"; "")' calm)*" \( -name memory.limit_in_bytes -o -name memory.max \) | head -1)
check "  the other container's limit in its cgroup" equal "$(cat "$limit")" $((24 << 20))
check "  its size by resourceFieldRef" equal "$(log_of limited calm)" 24
check "  Guaranteed" pod_is limited .status.qosClass Guaranteed

container_ended words "5 Error" file
check "terminationMessagePath" container_is words .state.terminated.message $'my last words' file
container_ended words "6 Error" logs
check "FallbackToLogsOnError" container_is words .state.terminated.message $'from the log' logs
check "activeDeadlineSeconds" pod_comes_to 15 deadline '"\(.status.phase) \(.status.reason) \(.status.containerStatuses[0].state.terminated.exitCode)"' "Failed DeadlineExceeded 137"
check "a finished pod has no sandbox" equal "$(env_podman pod exists "podhost-$(of_pod never-0 .metadata.uid)" && echo yes)" ""
check "  but still its log" equal "$(log_of words logs)" "from the log"
call GET "$pods/words/log"
check "logs of which container?" is_status 400 BadRequest "choose one of: [file logs]"
for name in helped always-0 always-1 failure-0 failure-1 never-0 never-1 init init-fails init-retries volumes secure limited words deadline; do
    call DELETE "$pods/$name?gracePeriodSeconds=0"
done
