.spec.containers[].resources = {requests: {cpu: "50m", memory: "64Mi"}, limits: {cpu: "1", memory: "1Gi"}}
