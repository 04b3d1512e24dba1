(.spec.containers[], .spec.initContainers[]).resources = {requests: {cpu: "50m", memory: "64Mi"}, limits: {cpu: "60m", memory: "76Mi"}}
| (.spec.containers[] | select(.name == "pilot")).resources = {requests: {cpu: "100m", memory: "512Mi"}, limits: {cpu: "120m", memory: "600Mi"}}
