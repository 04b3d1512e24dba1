.metadata.labels += {"field.cattle.io/projectId": "p-1", "app.kubernetes.io/instance": "site"}
| .metadata.annotations += {"cni.projectcalico.org/podIP": "10.0.0.1/32", "kubernetes.io/psp": "eks.privileged", "text": ("x" * 20000)}
