.spec.hostUsers = false
