.spec.initContainers |= [{name: "mesh-init", image: $busybox, command: ["true"],
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: ["ALL"]}}}] + .
