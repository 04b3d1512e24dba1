# shellcheck shell=bash
# The compute entrypoint of tests/e2e/ce on Kubernetes: manifests/ce with the pool of the environment, and a remote
# access point in a pod.

system=glidepod-system
in_system() { env_kubectl --namespace "$system" "$@"; }
as_named() { "$KUBECTL" --kubeconfig "$KUBECONFIG" "$@"; }  # objects name their namespaces

# The cluster has no name server and no kube-proxy: the entrypoint's service is an address that leads to its pod.
ce_lead() {
    local pod
    pod=$(in_system get pod ce-0 -o jsonpath='{.status.podIP}') && [[ -n $pod ]] || return
    in_env iptables -t nat -F GLIDEPOD-CE 2>/dev/null || {
        in_env iptables -t nat -N GLIDEPOD-CE
        in_env iptables -t nat -A PREROUTING -d "$ce_address" -p tcp --dport 9619 -j GLIDEPOD-CE
        in_env iptables -t nat -A OUTPUT -d "$ce_address" -p tcp --dport 9619 -j GLIDEPOD-CE
    }
    in_env iptables -t nat -A GLIDEPOD-CE -p tcp -j DNAT --to-destination "$pod:9619"
    in_env iptables -t nat -A POSTROUTING -d "$pod" -p tcp --dport 9619 -j MASQUERADE
}

# A site's own folder, as docs/ce.md has it.
ce_site() {
    local site=$GLIDEPOD_ENV/ce-site
    mkdir -p "$site" && cp -r "$env_tree/manifests/ce" "$GLIDEPOD_ENV/ce-manifests" &&
        ce_config >"$GLIDEPOD_ENV/ce-manifests/ce.config" && ce_routes >"$site/routes.config" || return
    cat >"$site/kustomization.yaml" <<YAML
bases: [../ce-manifests]
images:
- {name: registry.example.org/glidepod/pool, newName: $env_registry/glidepod/pool}
configMapGenerator:
- {name: glidepod-ce, namespace: $system, behavior: merge, files: [routes.config]}
- name: glidepod-ce-settings
  namespace: $system
  behavior: merge
  literals: [GLIDEPOD_CE_HOST=$ce_address, GLIDEPOD_POOL=$env_pool_address, _CONDOR_SEC_DEFAULT_SESSION_DURATION=20, _CONDOR_ALIVE_INTERVAL=20]
YAML
    mkdir -p "$GLIDEPOD_ENV/volumes/ce"
    env_kubectl apply -f - >/dev/null <<YAML || return
apiVersion: v1
kind: PersistentVolume
metadata: {name: glidepod-ce}
spec:
  capacity: {storage: 20Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: $system, name: data-ce-0}
  hostPath: {path: $GLIDEPOD_ENV/volumes/ce}
YAML
    as_named apply -k "$site" >/dev/null
}
secret() { in_system create secret generic "$1" "--from-file=$2=/dev/stdin" >/dev/null; }  # NAME KEY

ce_up() {
    ce_address=$(sed -E 's/.*https:\/\/([0-9.]+)\.[0-9]+".*/\1.201/' <<<"\"$(env_kubectl config view -o jsonpath='{.clusters[0].cluster.server}')\"")
    as_named apply -f "$env_manifests/provisioner/namespace.yaml" >/dev/null &&
        wait_until 20 "a service account" in_system get serviceaccount default || return
    env_in_pool cat /etc/condor/passwords.d/POOL | secret glidepod-pool-key POOL &&
        env_in_pool cat /var/lib/glidepod/tokens/provisioner/provisioner | secret glidepod-provisioner-token provisioner &&
        openssl rand -base64 48 | tr -d '\n' | secret glidepod-ce-key POOL &&
        ce_site && ce_ready || return
    env_kubectl run remote --image "$env_registry/$env_pool_image" --env GLIDEPOD_TRUST_DOMAIN=remote \
        --env _CONDOR_GRIDMANAGER_JOB_PROBE_INTERVAL=5 --env _CONDOR_GRIDMANAGER_RESOURCE_PROBE_INTERVAL=10 \
        --env _CONDOR_SCHEDD_NAME=remote@ap >/dev/null && wait_until 60 "a remote access point" in_remote condor_q
}
ce_ready() {
    wait_until 120 "the entrypoint's pod" ce_pod_runs && ce_lead
}
ce_pod_runs() { [[ $(in_system get pod ce-0 -o jsonpath='{.status.containerStatuses[*].ready}') == "true true" ]]; }
ce_restart() { in_system delete pod ce-0 --force --grace-period 0 >/dev/null 2>&1; ce_ready; }
ce_down() {
    as_named delete --ignore-not-found --wait=false namespace "$system" >/dev/null 2>&1
    env_kubectl delete --ignore-not-found --wait=false pv glidepod-ce >/dev/null 2>&1
}

in_ce() { in_system exec ce-0 -c ce -- "$@" </dev/null; }
in_routed() { in_system exec ce-0 -c routed -- "$@" </dev/null; }
in_remote() { env_kubectl exec remote -- "$@" </dev/null; }
as_remote() { env_kubectl exec -i remote -- setpriv --reuid alice --regid alice --init-groups env -C /home/alice HOME=/home/alice USER=alice "$@"; }
