.spec.containers |= (sort_by(.name) | reverse)
