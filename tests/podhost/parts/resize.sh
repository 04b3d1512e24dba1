# shellcheck shell=bash
# The subresource resize, by the kernel's word: what each container's control group says after it.

resize="$pods/sized/resize"
made='{requests: {cpu: "500m", memory: "64Mi"}, limits: {cpu: "1", memory: "128Mi"}}'
create sized '.metadata.annotations = {"glidepod.io/requests.cpu": "1", "glidepod.io/requests.memory": "128Mi", "glidepod.io/limits.cpu": "2", "glidepod.io/limits.memory": "256Mi"}
    | .spec.containers += [container("payload-0"; "sleep 1000"), container("payload-1"; "sleep 1000")]
    | (.spec.containers[1:][]).resources = '"$made"'
    | .spec.volumes = [{name: "api", projected: {sources: [{serviceAccountToken: {path: "token"}}, {downwardAPI: {items: [{path: "namespace", fieldRef: {fieldPath: "metadata.namespace"}}]}}]}}]
    | .spec.containers[0].volumeMounts = [{name: "api", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}]'
check "a pod of three containers" runs sized

# What the kernel has for a container: CPUs in thousandths, and MiB.
in_kernel() {  # CONTAINER
    local pid group id
    id=$(of_container sized '.containerID | sub("podman://"; "")' "$1")
    pid=$(in_env_process "$id")
    if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
        group=/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$pid/cgroup")
        awk '{printf "%d ", $1 * 1000 / $2}' "$group/cpu.max"
        echo $(($(cat "$group/memory.max") >> 20))
    else
        group=/sys/fs/cgroup/cpu$(sed -n 's/^[0-9]*:\(cpu\|cpu,cpuacct\|cpuacct,cpu\)://p' "/proc/$pid/cgroup")
        echo -n "$(($(cat "$group/cpu.cfs_quota_us") * 1000 / $(cat "$group/cpu.cfs_period_us"))) "
        group=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' "/proc/$pid/cgroup")
        echo $(($(cat "$group/memory.limit_in_bytes") >> 20))
    fi
}
# A container's first process as this machine sees it: its control group names the container.
in_env_process() {  # ID
    grep -l "$1" /proc/[0-9]*/cgroup 2>/dev/null | while IFS=/ read -r _ _ pid _; do
        [[ $(cat "/proc/$pid/comm" 2>/dev/null) == sleep ]] && echo "$pid" && break
    done
}
# One container's requests and limits, as the agent asks for them.
sized() {  # VERSION INDEX CPU_MILLI MEMORY_MIB
    jq -nc --arg version "$1" --arg path "/spec/containers/$2/resources/" --arg cpu "$3m" --arg memory "$(($4 << 20))" '
        [{op: "test", path: "/metadata/resourceVersion", value: $version}] + [("requests", "limits") |
         {op: "add", path: ($path + . + "/cpu"), value: $cpu}, {op: "add", path: ($path + . + "/memory"), value: $memory}]'
}
version() { of_pod sized .metadata.resourceVersion; }
shows() { container_comes_to 10 sized '.resources.limits | "\(.cpu) \(.memory)"' "$2 $3" "$1"; }  # CONTAINER CPU MEMORY
json_patch=application/json-patch+json
# Again where a status came in between, as the agent does.
resize_now() {  # INDEX CPU_MILLI MEMORY_MIB
    for _ in 1 2 3 4 5; do
        call PATCH "$resize" "$(sized "$(version)" "$@")" "$json_patch"
        [[ $code != 200 ]] || return 0
    done
}

check "made with what its spec says" equal "$(in_kernel payload-0)" "1000 128"
check "  as its status does" equal "$(of_container sized '[.resources.limits.memory, .allocatedResources.memory] | join(" ")' payload-0)" "128Mi 64Mi"

uid=$(of_pod sized .metadata.uid)
first_id=$(of_container sized .containerID payload-0)
socket=$GLIDEPOD_ENV/podhost/pods/$uid/volumes/api/api.sock
before=$(version)
call PATCH "$resize" "$(sized "$before" 1 250 48)" "$json_patch"
check "its own socket makes a payload container smaller" equal "$code" 200
check "  the status shows it" shows payload-0 250m 48Mi
echo "   requested: 250 48, allocated: $(in_kernel payload-0)"
check "  and so does the kernel" equal "$(in_kernel payload-0)" "250 48"
check "  the other is as it was" equal "$(in_kernel payload-1)" "1000 128"
call PATCH "$resize" "$(sized "$before" 1 250 48)" "$json_patch"
check "a late attempt does nothing" is_status 422 Invalid "test"
call PATCH "$resize" "$(sized "$(version)" 2 750 80)" "$json_patch"
check "what one has given the other gets" equal "$code" 200
check "  the status shows it" shows payload-1 750m 80Mi
echo "   requested: 750 80, allocated: $(in_kernel payload-1)"
check "  and so does the kernel" equal "$(in_kernel payload-1)" "750 80"
call PATCH "$resize" "$(sized "$(version)" 2 100 32)" "$json_patch"
check "  less of it" shows payload-1 100m 32Mi
call PATCH "$resize" "$(sized "$(version)" 2 750 80)" "$json_patch"
check "  and more again" shows payload-1 750m 80Mi
echo "   requested: 750 80, allocated: $(in_kernel payload-1)"
check "  by the kernel's word" equal "$(in_kernel payload-1)" "750 80"
call PATCH "$resize" "$(sized "$(version)" 2 751 80)" "$json_patch"
check "no more than the pod was made with" is_status 403 Forbidden "annotation glidepod.io/requests.cpu"
call PATCH "$resize" "$(sized "$(version)" 2 750 81)" "$json_patch"
check "  nor more memory" is_status 403 Forbidden "annotation glidepod.io/requests.memory"
call PATCH "$resize" '{"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}]}}' application/strategic-merge-patch+json
check "not its first container" is_status 403 Forbidden "other than the first"
call PATCH "$pods/neighbour/resize" '{}' application/merge-patch+json
check "not its neighbour" is_status 403 Forbidden 'resource "pods/resize"'
call GET "$resize"
check "it is for patches" is_status 403 Forbidden 'resource "pods/resize"'
call PATCH "$resize" '{"spec": {"containers": [{"name": "payload-0", "image": "evil"}]}}' application/strategic-merge-patch+json
check "images come another way" is_status 422 Invalid "only cpu and memory resources"
call PATCH "$pods/sized" '{"spec": {"containers": [{"name": "payload-0", "resources": {"limits": {"cpu": "2"}}}]}}' application/strategic-merge-patch+json
check "  and sizes not with them" is_status 422 Invalid "may not change fields other than"
socket=""
check "no container was started again" equal "$(of_container sized '"\(.containerID) \(.restartCount)"' payload-0)" "$first_id 0"

# More in use than it is to have: the kernel must not kill.
create hungry '.spec.containers[0] |= (.command = sh("dd if=/dev/zero of=/dev/shm/x bs=1M count=40 2>/dev/null; echo full; sleep 1000")
    | .resources = '"$made"')'
runs hungry
check "a container with 40 MiB in use" wait_until 15 "its file" log_has hungry full
call PATCH "$pods/hungry/resize" '{"spec": {"containers": [{"name": "main", "resources": {"requests": {"memory": "16Mi"}, "limits": {"memory": "16Mi"}}}]}}' application/strategic-merge-patch+json
check "is to have 16: it is said that this cannot be yet" pod_comes_to 10 hungry '[.status.conditions[] | select(.type == "PodResizeInProgress") | .reason][0]' Error
check "  it has what it had" equal "$(of_container hungry '"\(.resources.limits.memory) \(.restartCount) \(.state | keys[0])"')" "128Mi 0 running"
in_pod hungry main rm /dev/shm/x
check "  and gets it when it can" container_comes_to 15 hungry .resources.limits.memory 16Mi
check "  without an end" equal "$(of_container hungry '"\(.restartCount) \(.state | keys[0])"')" "0 running"

# Another image after that: the size is the spec's.
call PATCH "$pods/sized" '{"spec": {"containers": [{"name": "payload-0", "image": "localhost/demo/busybox:2"}]}}' application/strategic-merge-patch+json
check "another image" container_comes_to 15 sized '"\(.restartCount) \(.state | keys[0])"' "1 running" payload-0
check "  with the same size" equal "$(in_kernel payload-0)" "250 48"
resize_now 2 100 16
check "what the other gives" shows payload-1 100m 16Mi
resize_now 1 900 112
check "  makes it more than twice what it was made with" shows payload-0 900m 112Mi
check "  by the kernel's word" equal "$(in_kernel payload-0)" "900 112"
call DELETE "$pods/sized?gracePeriodSeconds=0"
call DELETE "$pods/hungry?gracePeriodSeconds=0"
wait_until 10 "the end of sized" gone sized
