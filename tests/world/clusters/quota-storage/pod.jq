(.spec.containers[], .spec.initContainers[]).resources = {requests: {cpu: "10m", memory: "64Mi", "ephemeral-storage": "1Gi"}}
