# shellcheck shell=bash
# The test environment on Kubernetes, sourced by lib.sh. The cluster is one of:
#
#   * a new one, by tests/e2e/cluster/up, which ends with the environment; with
#     GLIDEPOD_KUBERNETES=DIR it runs the programs in DIR (`up --help`);
#   * with GLIDEPOD_CLUSTER, one that tests/e2e/cluster/up made in that folder;
#   * with KUBECONFIG and GLIDEPOD_REGISTRY (HOST:PORT/PATH), any. Its nodes must take
#     images from that registry, and skopeo must be able to put them there.
#
# Of the last two, only the namespace is removed at the end. On clusters of the first
# two kinds the programs of the node can be stopped, killed and started:
#
#   env_node_stop PROGRAM, env_node_start PROGRAM, env_node_kill PROGRAM [SIGNAL]

env_kind=kubernetes
env_images=("$env_pilot_image" "$env_pool_image" glidepod/provisioner:dev glidepod/image-store:dev "${env_images[@]}")
env_namespace=glidepod
env_manifests=$env_tree/manifests
env_not_found=": not found"  # of a registry's answer, as this environment passes it on

# Debian packages the environment runs on, besides those of the cluster.
env_packages() { debian_packages skopeo jq curl util-linux; }

env_load() {
    # shellcheck disable=SC1091
    source "$GLIDEPOD_ENV/kubernetes"
    export KUBECONFIG
    env_pod_registry=$env_registry
}

env_running() { [[ -n ${GLIDEPOD_ENV:-} && -s $GLIDEPOD_ENV/kubernetes ]]; }

# It ends before it is worth its while to collect garbage, which is a third of the processor time of most calls.
env_kubectl() { GOGC=off "$KUBECTL" --kubeconfig "$KUBECONFIG" --namespace "$env_namespace" "$@"; }
env_kubernetes_minor() { env_kubectl version -o json 2>/dev/null | jq -r '.serverVersion.gitVersion | split(".")[1]'; }

# Makes the folder, and the cluster unless there is one.
env_init() {
    [[ $(id -u) == 0 ]] || env_die "must run as root" || return
    env_packages || return
    GLIDEPOD_ENV=${GLIDEPOD_ENV:-$(mktemp -d /var/tmp/glidepod-env.XXXXXX)}
    export GLIDEPOD_ENV
    [[ ! -e $GLIDEPOD_ENV/kubernetes ]] || env_die "$GLIDEPOD_ENV is in use" || return
    mkdir -p "$GLIDEPOD_ENV/log"
    : >"$GLIDEPOD_ENV/kubernetes"
    local cluster=${GLIDEPOD_CLUSTER:-}
    if [[ -z $cluster && -n ${KUBECONFIG:-} && -n ${GLIDEPOD_REGISTRY:-} ]]; then
        cat >"$GLIDEPOD_ENV/kubernetes" <<END
KUBECONFIG=$KUBECONFIG
KUBECTL=${KUBECTL:-kubectl}
env_registry=$GLIDEPOD_REGISTRY
END
    else
        if [[ -z $cluster ]]; then
            cluster=$GLIDEPOD_ENV/cluster
            : >"$GLIDEPOD_ENV/own-cluster"
            env_say "starting Kubernetes"
            "$env_source/../e2e/cluster/up" --state "$cluster" >/dev/null || return
        fi
        {
            cat "$cluster/env"
            echo "env_cluster=$cluster"
            echo 'env_registry=$REGISTRY'
        } >"$GLIDEPOD_ENV/kubernetes"
    fi
    env_load
    env_say "state is in $GLIDEPOD_ENV"
}

# Runs a command where the processes of all pods are seen: on the node, or, where that
# is out of reach, in the pilot container.
in_env() {
    local node
    if [[ -n ${env_cluster:-} ]]; then
        read -r node _ <"$env_cluster/pid"
        nsenter --target "$node" --mount --net --ipc --pid -- "$@"
    else
        env_in_pilot pilot "$@"
    fi
}

# Ends a program of the node, which is started again a second later; keeps one from
# being started; starts it again.
env_node_kill() { in_env kill -s "${2:-KILL}" "$(env_node_pid "$1")"; }  # PROGRAM [SIGNAL]
env_node_stop() {  # PROGRAM [SIGNAL]
    local pid
    pid=$(env_node_pid "$1")
    : >"$env_cluster/run/$1.stopped"
    in_env kill -s "${2:-TERM}" "$pid" && wait_until 30 "the end of $1" env_gone "$pid"
}
env_node_start() {  # PROGRAM
    local before
    before=$(env_node_pid "$1")
    rm -f "$env_cluster/run/$1.stopped"
    wait_until 10 "the start of $1" env_node_restarted "$1" "$before"
}
env_node_restarted() { [[ $(env_node_pid "$1") != "$2" ]]; }
env_node_pid() { cat "$env_cluster/run/$1.pid"; }
env_gone() { ! in_env kill -0 "$1" 2>/dev/null; }

# Puts an image of images/build into a registry.
env_push() {  # IMAGE NAME [OPTION...]
    local from=containers-storage:localhost/$1
    # Where it is already, it is compressed.
    [[ $2 == "$env_registry/$1" || " ${env_images[*]} " != *" $1 "* ]] || from=docker://$env_registry/$1
    containers_conf_of_cache skopeo copy --quiet --src-tls-verify=false --dest-tls-verify=false "${@:3}" "$from" "docker://$2"
}

env_start_registry() {
    [[ -e $env_cache/podman/etc/storage.conf ]] || env_die "no images yet: see images/build --help" || return
    if [[ -n ${env_cluster:-} ]]; then
        env_fill_registry "$env_cluster/registry" || return
    else
        env_push_images || return
    fi
    env_say "registry $env_registry has ${env_images[*]}"
}

# The pool: central manager and access point in one pod; and the token for pilots, as
# the secret that the pilot pod mounts. Its queue has a name with @: no name server knows
# the pod's own, by which others would look for it.
env_start_pool() {
    env_kubectl apply -k "$env_manifests/base" >/dev/null || return
    env_kubectl create -f - >/dev/null <<END || return
{
  "apiVersion": "v1",
  "kind": "Pod",
  "metadata": {"name": "pool"},
  "spec": {
    "automountServiceAccountToken": false,
    "enableServiceLinks": false,
    "terminationGracePeriodSeconds": 1,
    "containers": [{"name": "pool", "image": "$env_registry/$env_pool_image",
                    "env": [{"name": "_CONDOR_SCHEDD_NAME", "value": "ap@pool"},
                            {"name": "_CONDOR_COLLECTOR_QUERY_WORKERS", "value": "0"}]}]
  }
}
END
    wait_until 120 "the pool" env_pool_ready || { env_kubectl describe pod pool >&2; return 1; }
    env_pool_address=$(env_kubectl get pod pool -o jsonpath='{.status.podIP}')
    echo "env_pool_address=$env_pool_address" >>"$GLIDEPOD_ENV/kubernetes"
    [[ -z ${env_cluster:-} ]] ||
        env_processes_of "$(env_kubectl get pod pool -o jsonpath='{.metadata.uid}')" condor_master >"$GLIDEPOD_ENV/pool-pid"
    env_in_pool cat /var/lib/glidepod/tokens/pilot/pilot >"$GLIDEPOD_ENV/token" || return
    env_kubectl create secret generic glidepod-pool-token --from-file="pilot=$GLIDEPOD_ENV/token" \
        --dry-run=client -o yaml | env_kubectl apply -f - >/dev/null || return
    env_say "pool at $env_pool_address"
}

# Another namespace of pilots, as manifests/base makes it, with the pool's token in it.
env_make_namespace() {  # NAME
    env_kubectl kustomize "$env_manifests/base" | sed "s/\(namespace: \|^  name: \)$env_namespace\$/\1$1/" |
        env_kubectl --namespace "$1" apply -f - >/dev/null &&
        env_kubectl get secret glidepod-pool-token -o json | jq '{apiVersion, kind, type, data, metadata: {name: .metadata.name}}' |
        env_kubectl --namespace "$1" apply -f - >/dev/null
}
# For this shell's pods one of their own.
env_begin_namespace() {  # NAME
    env_make_namespace "$1" || return
    env_namespace=$1
    wait_until 30 "the service account of namespace $1" env_kubectl get serviceaccount default >/dev/null
}
# Pods that are left in it end soon, and nobody waits for that.
env_end_namespace() { env_kubectl delete namespace "$env_namespace" --wait=false >/dev/null 2>&1; }

# Processes of a pod by their name, as the node numbers them.
env_processes_of() {  # POD_UID NAME
    in_env sh -c 'for process in $(pgrep -x "$2"); do
        ! grep -qs "$1" "/proc/$process/cgroup" || echo "$process"
    done' sh "$1" "${2:0:15}"
}

# The example of manifests/ with this registry and pool, without the requests that a
# small machine may not fulfil.
env_pilot_manifest=pilot-pod.yaml
env_pilot_pod() {  # [FILTER]
    local json=$GLIDEPOD_ENV/${env_pilot_manifest//\//-}.json
    [[ -s $json ]] || env_kubectl create --dry-run=client -f "$env_manifests/$env_pilot_manifest" -o json >"$json" || return
    jq --arg image "$env_registry/$env_pilot_image" "
            (.spec.initContainers[], .spec.containers[]).image = \$image
            | del(.spec.containers[].resources, .metadata.namespace) | .metadata.name = \"$env_pilot\"
            | $(env_setting CONDOR_HOST "$env_pool_address") | $(env_setting _CONDOR_STARTER_UPDATE_INTERVAL 5)
            ${env_cluster:+| $(env_setting GLIDEPOD_INSECURE_REGISTRIES "$env_registry")}
            | ${1:-.}" "$json"
}

env_create_pod() { env_kubectl create -f "$1" >/dev/null; }  # FILE
env_delete_pod() { env_kubectl delete pod "$1" ${2:+--grace-period "$2"} >/dev/null; }  # NAME [SECONDS]
env_end_pod() { env_kubectl delete pod "$1" --grace-period "$2" --wait=false >/dev/null; }  # NAME SECONDS
env_pod() { env_kubectl get pod "$env_pilot" -o json; }
env_pilot_log() { env_kubectl logs "$env_pilot" -c "${1:-pilot}"; }  # [CONTAINER]
env_in_pilot() { env_kubectl exec "$env_pilot" -c "$1" -- "${@:2}"; }  # CONTAINER COMMAND...

# The provisioner, with these settings, in the pilots' namespace; the API may be had by way of somebody else.
env_start_provisioner() {  # SETTINGS TEMPLATE [API_HOST API_PORT]
    local token=$GLIDEPOD_ENV/provisioner-token api="[]"
    (($# == 2)) || api='[{"name": "KUBERNETES_SERVICE_HOST", "value": "'$3'"}, {"name": "KUBERNETES_SERVICE_PORT", "value": "'$4'"}]'
    : >"$token"
    [[ $env_pool_address == none ]] || env_in_pool cat /var/lib/glidepod/tokens/provisioner/provisioner >"$token" || return
    sed "s/glidepod-system/$env_namespace/" "$env_manifests/provisioner/access.yaml" | env_kubectl apply -f - >/dev/null &&
        env_kubectl create configmap provisioner --from-file "provisioner.conf=$1" --from-file "pilot-pod.json=$2" >/dev/null &&
        env_kubectl create secret generic provisioner-token --from-file "provisioner=$token" >/dev/null || return
    env_kubectl create -f - >/dev/null <<END || return
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "provisioner"},
 "spec": {"serviceAccountName": "glidepod-provisioner", "automountServiceAccountToken": true, "enableServiceLinks": false,
   "terminationGracePeriodSeconds": 1,
   "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532},
   "containers": [{"name": "provisioner", "image": "$env_registry/glidepod/provisioner:dev",
     "args": ["run", "--config=/etc/provisioner/provisioner.conf"],
     "env": $api,
     "volumeMounts": [{"name": "configuration", "mountPath": "/etc/provisioner"},
                      {"name": "token", "mountPath": "/etc/condor/tokens.d"}, {"name": "status", "mountPath": "/run/provisioner"}]}],
   "volumes": [{"name": "configuration", "configMap": {"name": "provisioner"}}, {"name": "status", "emptyDir": {}},
               {"name": "token", "secret": {"secretName": "provisioner-token", "defaultMode": 288}}]}}
END
    wait_until 60 "the provisioner" env_provisioner_works || { env_kubectl logs provisioner | tail -n 20 >&2; return 1; }
}
env_end_provisioner() { env_kubectl delete --ignore-not-found pod/provisioner configmap/provisioner secret/provisioner-token >/dev/null; }
env_provisioner_works() { env_kubectl logs provisioner | grep "event=cycle " >/dev/null; }

# Everything; images/build has made the images.
env_up() {  # BUILD_DIR [FILTER]
    env_init && env_start_registry && env_start_pool &&
        env_pilot_pod "${2:-.}" >"$GLIDEPOD_ENV/$env_pilot.json" &&
        env_start_pilot "$GLIDEPOD_ENV/$env_pilot.json"
}

# Ends everything and removes the folder. GLIDEPOD_KEEP=1 keeps it, for its logs.
env_down() {
    trap '' INT TERM HUP  # whoever interrupts twice still leaves nothing behind
    [[ -n ${GLIDEPOD_ENV:-} && -e $GLIDEPOD_ENV/kubernetes ]] || return 0
    if [[ -e $GLIDEPOD_ENV/own-cluster ]]; then
        "$env_source/../e2e/cluster/down" --state "$GLIDEPOD_ENV/cluster" ${GLIDEPOD_KEEP:+--keep-logs}
    elif env_running; then
        env_load
        env_kubectl delete pods --all --grace-period 1 >/dev/null 2>&1
        env_kubectl delete namespace "$env_namespace" >/dev/null
    fi
    rm -f "$GLIDEPOD_ENV/kubernetes"
    [[ -n ${GLIDEPOD_KEEP:-} ]] || rm -rf --one-file-system "$GLIDEPOD_ENV"
}

! env_running || env_load
