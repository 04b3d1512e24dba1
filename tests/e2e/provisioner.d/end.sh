# shellcheck shell=bash
# nothing is left but the pool and the provisioner
#
# Needs: no pods, no jobs.
# Leaves: nothing.

# Everything in both namespaces but what belongs to the pool, the provisioner and Kubernetes itself, which puts config
# maps into every namespace: which ones depends on whose Kubernetes it is.
left_over() {
    { env_kubectl get all,leases,configmaps,secrets,pvc -o name && in_system get all,leases,configmaps,secrets,pvc -o name; } |
        grep -vE '/(central-manager|access-point|glidepod-provisioner|glidepod-pilot|default-token|data-central-manager-0|data-access-point-0|glidepod-pool)' |
        grep -vxFf <(env_kubectl --namespace default get configmaps -o name)
}

test_end() {
    check "nothing is left but the pool and the provisioner" equal "$(left_over)" ""
    check "which are in order" in_system rollout status deployment glidepod-provisioner --timeout 1s
}
