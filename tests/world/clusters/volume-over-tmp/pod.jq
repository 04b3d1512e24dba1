.spec.volumes += [{name: "tmp", emptyDir: {}}]
| (.spec.containers[] | select(.name | startswith("payload-"))).volumeMounts += [{name: "tmp", mountPath: "/tmp"}]
