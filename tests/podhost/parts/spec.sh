# shellcheck shell=bash
# What a pod may not say: each unsupported or wrong field is refused by its path.

refuses() {  # WORDS FILTER
    call POST "$pods" "$(pod refused "$2")"
    check "refused: $1" is_status 422 Invalid "$1"
}
refuses "spec.containers[0].livenessProbe: podhost does not support this field" '.spec.containers[0].livenessProbe = {exec: {command: ["true"]}}'
refuses "spec.containers[0].lifecycle: podhost does not support this field" '.spec.containers[0].lifecycle = {}'
refuses "spec.containers[0].envFrom: podhost does not support this field" '.spec.containers[0].envFrom = []'
refuses "spec.containers[0].tty: podhost does not support this field" '.spec.containers[0].tty = true'
refuses "spec.containers[0].env[0].valueFrom.secretKeyRef: podhost does not support this field" '.spec.containers[0].env = [{name: "A", valueFrom: {secretKeyRef: {name: "s", key: "k"}}}]'
refuses "spec.containers[0].ports[0].hostPort: podhost does not support this field" '.spec.containers[0].ports = [{containerPort: 80, hostPort: 80}]'
refuses "spec.containers[0].resources.limits.nvidia.com/gpu: podhost does not support this field" '.spec.containers[0].resources.limits = {"nvidia.com/gpu": 1}'
refuses "spec.containers[0].securityContext.seLinuxOptions: podhost does not support this field" '.spec.containers[0].securityContext.seLinuxOptions = {}'
refuses "spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy" '.spec.containers[0].securityContext.privileged = true'
refuses "spec.containers[0].securityContext.runAsUser: Invalid value: -1" '.spec.containers[0].securityContext.runAsUser = -1'
refuses "spec.securityContext.runAsUser: Invalid value: -1" '.spec.securityContext.runAsUser = -1'
refuses "spec.volumes[0].secret: podhost does not support this field" '.spec.volumes = [{name: "v", secret: {secretName: "s"}}]'
refuses "spec.volumes[0].hostPath.path: Invalid value: must be an absolute path without" '.spec.volumes = [{name: "v", hostPath: {path: "/a/../b"}}]'
refuses "spec.volumes[1].name: Duplicate value" '.spec.volumes = [{name: "v"}, {name: "v"}]'
refuses "spec.containers[0].volumeMounts[0].subPath: Invalid value: must not contain" '.spec.volumes = [{name: "v"}] | .spec.containers[0].volumeMounts = [{name: "v", mountPath: "/v", subPath: "../x"}]'
refuses 'spec.containers[0].volumeMounts[0].name: Invalid value: Not found: "w"' '.spec.containers[0].volumeMounts = [{name: "w", mountPath: "/v"}]'
refuses "spec.containers: Required value" '.spec.containers = []'
refuses "spec.containers[1].name: Duplicate value" '.spec.containers += .spec.containers'
refuses "spec.containers[0].image: Required value" 'del(.spec.containers[0].image)'
refuses "spec.hostPID: podhost does not support this field" '.spec.hostPID = true'
refuses "spec.hostUsers: podhost does not support this field" '.spec.hostUsers = false'
refuses "spec.affinity: podhost does not support this field" '.spec.affinity = {}'
refuses "spec.automountServiceAccountToken: podhost gives a service account only through a projected volume" '.spec.automountServiceAccountToken = true'
refuses 'spec.nodeName: Unsupported value: "elsewhere"' '.spec.nodeName = "elsewhere"'
refuses 'spec.restartPolicy: Unsupported value: "Sometimes"' '.spec.restartPolicy = "Sometimes"'
refuses "spec.terminationGracePeriodSeconds: Invalid value: -1" '.spec.terminationGracePeriodSeconds = -1'
refuses "spec.activeDeadlineSeconds: Invalid value: 0" '.spec.activeDeadlineSeconds = 0'
refuses 'metadata.name: Invalid value: "No"' '.metadata.name = "No"'
refuses 'metadata.name: Invalid value: "../x"' '.metadata.name = "../x"'
refuses "metadata.labels[a]: Invalid value: must be a string" '.metadata.labels = {a: 1}'
refuses "spec.containers[0].command: Invalid value: must be a list" '.spec.containers[0].command = "sleep"'
refuses "spec.containers[0].env[0].name: Invalid value: must not contain" '.spec.containers[0].env = [{name: "A\u0000B", value: "x"}]'
refuses "spec.containers[0].resources.limits.cpu: Invalid value" '.spec.containers[0].resources.limits.cpu = "9000000000000000"'
refuses "spec.containers[0].resources.limits.memory: Invalid value" '.spec.containers[0].resources.limits.memory = "much"'
refuses "spec.containers[0].resources.limits.memory: Invalid value" '.spec.containers[0].resources.limits.memory = "-1Mi"'
call POST "$pods" "$(pod refused '.spec.hostPID = true | .spec.hostIPC = true | .spec.containers[0].tty = true')"
check "all that is wrong at once" equal "$(field '[.details.causes[].field] | sort | join(" ")')" "spec.containers[0].tty spec.hostIPC spec.hostPID"
call POST "$pods" "$(pod warned '.spec.containers[0].resources.limits = {"ephemeral-storage": "1Gi"}')"
check "a limit without effect is accepted" equal "$code" 201
call DELETE "$pods/warned?gracePeriodSeconds=0"
call POST "$pods" '{"kind": "Service", "apiVersion": "v1", "metadata": {"name": "x"}}'
check "another kind" is_status 400 BadRequest "not a v1 Pod"
