# shellcheck shell=bash
# Why a container waits, in the kubelet's words; and the pod goes on once the reason is gone.

image() { echo ".spec.containers[0].image = \"$1\" | .spec.containers[0].imagePullPolicy = \"${2:-IfNotPresent}\""; }
create no-image "$(image "$env_registry/demo/nope:1")"
check "ErrImagePull" container_comes_to 5 no-image .state.waiting.reason ErrImagePull
create bad-name "$(image "Not/An:Image:")"
create never-pull "$(image "$env_registry/demo/busybox:2-absent" Never)"
create no-registry "$(image 127.0.0.1:1/demo/busybox:1)"
create no-command '.spec.containers[0].command = ["/nowhere"]'
create no-cap '.spec.containers[0].securityContext.capabilities.add = ["NOT_ONE"]'
create root-forbidden '.spec.containers[0].securityContext.runAsNonRoot = true'
create no-folder '.spec.volumes = [{name: "h", hostPath: {path: "/nowhere/at/all", type: "Directory"}}] | .spec.containers[0].volumeMounts = [{name: "h", mountPath: "/h"}]'
check "InvalidImageName" container_comes_to 5 bad-name .state.waiting.reason InvalidImageName
check "  in the kubelet's words" contains "$(of_container bad-name .state.waiting.message)" "couldn't parse image"
check "ErrImageNeverPull" container_comes_to 5 never-pull .state.waiting.reason ErrImageNeverPull
check "ImagePullBackOff" container_comes_to 10 no-image .state.waiting.reason ImagePullBackOff
check "  in the kubelet's words" contains "$(of_container no-image .state.waiting.message)" "Back-off pulling image \"$env_registry/demo/nope:1\": ErrImagePull: "
check "  the pod is Pending" pod_is no-image .status.phase Pending
check "  and get has the reason" contains "$(env_podhost get | grep ^no-image)" ImagePullBackOff
check "a registry that does not answer" container_comes_to 10 no-registry '.state.waiting.reason | test("ErrImagePull|ImagePullBackOff")' true
check "a command that is not there: RunContainerError" container_comes_to 10 no-command .state.waiting.reason RunContainerError
check "  counted as a run" equal "$(of_container no-command '.lastState.terminated | "\(.exitCode) \(.reason)"')" "128 StartError"
check "a capability that is none: CreateContainerError" container_comes_to 10 no-cap .state.waiting.reason CreateContainerError
check "runAsNonRoot: CreateContainerConfigError" container_comes_to 10 root-forbidden '"\(.state.waiting.reason) \(.state.waiting.message)"' "CreateContainerConfigError container has runAsNonRoot and image will run as root"
check "no such hostPath: ContainerCreating" container_comes_to 10 no-folder '"\(.state.waiting.reason) \(.state.waiting.message | test("hostPath type check failed"))"' "ContainerCreating true"
call GET "$pods/no-image/log"
check "no log yet" is_status 400 BadRequest "is waiting to start"
env_podman push --quiet --tls-verify=false localhost/demo/busybox:1 "$env_registry/demo/nope:1" >/dev/null
check "once the image exists, it runs" runs no-image
check "  without a restart counted" equal "$(of_container no-image .restartCount)" 0
call PATCH "$pods/bad-name" '{"spec": {"containers": [{"name": "main", "image": "localhost/demo/busybox:1"}]}}' application/strategic-merge-patch+json
check "once the name is mended, it runs" runs bad-name
for name in no-image bad-name never-pull no-registry no-command no-cap root-forbidden no-folder; do call DELETE "$pods/$name?gracePeriodSeconds=0"; done
