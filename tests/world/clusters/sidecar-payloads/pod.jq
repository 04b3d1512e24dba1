def payload: .name | startswith("payload-");
.spec.restartPolicy = "Never"
    | .spec.initContainers += [.spec.containers[] | select(payload) + {restartPolicy: "Always"}]
    | .spec.containers |= map(select(payload | not))
