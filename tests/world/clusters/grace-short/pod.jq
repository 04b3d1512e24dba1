.spec.terminationGracePeriodSeconds = 20
