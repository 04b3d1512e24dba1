(.spec.containers[], .spec.initContainers[]).resources = {requests: {cpu: "10m", memory: "64Mi"}, limits: {cpu: "1", memory: "1Gi"}}
