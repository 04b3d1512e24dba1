.spec.containers[].imagePullPolicy = "Always" | .spec.initContainers[].imagePullPolicy = "Always"
