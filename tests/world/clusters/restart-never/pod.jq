.spec.restartPolicy = "Never"
