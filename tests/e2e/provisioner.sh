# shellcheck shell=bash
# What the scenes of tests/e2e/provisioner share: the pool and the provisioner of manifests/, what there is of both, jobs
# and settings. Sourced, after lib.sh.

# Pool and provisioner have a namespace of their own.
system=glidepod-system
in_system() { env_kubectl --namespace "$system" "$@"; }
as_named() { "$KUBECTL" --kubeconfig "$KUBECONFIG" "$@"; }  # objects name their namespaces

# The pool is that of the manifests: its access point, where it runs now.
env_exec_in_pool() {
    local pid=""
    [[ ! -s $GLIDEPOD_ENV/access-point ]] || read -r pid <"$GLIDEPOD_ENV/access-point"
    if [[ -z $pid ]] || ! in_env test -e "/proc/$pid"; then
        pid=$(env_processes_of "$(in_system get pod access-point-0 -o jsonpath='{.metadata.uid}')" condor_master)
        [[ -n $pid ]] || return
        echo "$pid" >"$GLIDEPOD_ENV/access-point"
    fi
    env_beside "$pid" "$@"
}

# --- deployment ----------------------------------------------------------------------

# kubectl of 1.20 has a kustomize that wants folders listed apart from files.
for_old_kubectl() {  # KUSTOMIZATION
    awk '/^- \.\.\// { bases = bases $0 "\n"; next } { text = text $0 "\n" }
        END { printf "%s", text; if (bases) printf "bases:\n%s", bases }' "$1" >"$1.new" && mv "$1.new" "$1"
}

settings() {  # [LINE...]: the manifests' settings, in the tempo of a test
    local replaced
    replaced=$(printf '%s\n' "$@" | sed -n 's/^\([a-z0-9_]*\)=.*/\/^\1=\/d;/p')
    # Few pods: the node holds two, and each one takes its time to begin and to end. Where that is long, some end
    # without a job; how many pods a test counts on must not depend on it.
    # Pullers have a test of their own; elsewhere they would take the node's time.
    sed -e "s|registry.example.org|$env_registry|; s/^sleep_time=.*/sleep_time=4/; /^pullers=/d; $replaced" \
        -e "s/central-manager.glidepod-system/$service_address/" "$env_manifests/provisioner/provisioner.conf"
    sed "$replaced" <<'END'
finished_kept=0
failed_kept=0
breaker_failures=2
breaker_first_pause=15
take_back_after=10
waste_feedback=no
unschedulable_limit=20
register_limit=60
[htcondor]
schedd_time_limit=15
[k8s]
max_pods_per_cluster=2
envs_dict=STARTD_NOCLAIM_SHUTDOWN:10,_CONDOR_UPDATE_INTERVAL:5
END
    printf '%s\n' "$@"
}

provisioner_tag=dev
pool_tag=dev

# A site's own folder, as docs/join.md and docs/provisioner-tasks.md describe it. The cluster has no name
# server and no kube-proxy: the collector's service gets a fixed address, and
# follow_service leads there.
write_site() {
    local file
    rm -rf "$GLIDEPOD_ENV/manifests" "$GLIDEPOD_ENV/site"
    cp -r "$env_manifests" "$GLIDEPOD_ENV/manifests" && mkdir "$GLIDEPOD_ENV/site" || return
    while read -r file; do for_old_kubectl "$file"; done < <(find "$GLIDEPOD_ENV/manifests" -name kustomization.yaml)
    settings "$@" >"$GLIDEPOD_ENV/site/provisioner.conf"
    cat >"$GLIDEPOD_ENV/site/kustomization.yaml" <<END
bases:
- ../manifests/pool
images:
- {name: registry.example.org/glidepod/pool, newName: $env_registry/glidepod/pool, newTag: $pool_tag}
- {name: registry.example.org/glidepod/provisioner, newName: $env_registry/glidepod/provisioner, newTag: $provisioner_tag}
configMapGenerator:
- {name: glidepod-provisioner, namespace: glidepod-system, behavior: merge, files: [provisioner.conf]}
generatorOptions: {disableNameSuffixHash: true}
patchesStrategicMerge:
- patches.yaml
END
    cat >"$GLIDEPOD_ENV/site/patches.yaml" <<END
apiVersion: v1
kind: Service
metadata: {name: central-manager, namespace: glidepod-system}
spec: {clusterIP: $service_address}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: central-manager, namespace: glidepod-system}
spec:
  template:
    spec:
      containers:
      - name: condor
        env: [{name: _CONDOR_TCP_FORWARDING_HOST, value: $service_address}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: access-point, namespace: glidepod-system}
spec:
  template:
    spec:
      containers:
      - name: condor
        # A startd that cannot be told of the access point's end keeps its claim for six intervals.
        env: [{name: CONDOR_HOST, value: $service_address}, {name: _CONDOR_ALIVE_INTERVAL, value: "20"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: glidepod-provisioner, namespace: glidepod-system}
spec:
  template:
    spec:
      containers:
      - {name: provisioner, imagePullPolicy: Always}
END
}

# The claims' volumes: folders of the node.
make_volumes() {
    local name
    for name in central-manager access-point; do
        mkdir -p "$GLIDEPOD_ENV/volumes/$name"
        env_kubectl apply -f - >/dev/null <<END || return
apiVersion: v1
kind: PersistentVolume
metadata: {name: glidepod-$name}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: $system, name: data-$name-0}
  hostPath: {path: $GLIDEPOD_ENV/volumes/$name}
END
    done
}

# Stands in for kube-proxy: leads what goes to the collector's service to its pod.
follow_service() {
    local address
    exec {endpoints}< <(exec "$KUBECTL" --kubeconfig "$KUBECONFIG" --namespace "$system" get endpoints central-manager \
        --watch -o jsonpath='{"address "}{.subsets[*].addresses[*].ip}{"\n"}' 2>/dev/null)
    watcher=$!
    while read -r _ address <&"$endpoints"; do
        in_env iptables -t nat -F GLIDEPOD-TEST
        [[ -n $address ]] || continue
        in_env iptables -t nat -A GLIDEPOD-TEST -p tcp -j DNAT --to-destination "$address:9618"
        in_env iptables -t nat -A POSTROUTING -s "$address" -d "$address" -j MASQUERADE  # to itself
    done
}

# Without the API server the watch ends; it is begun again. What leads nowhere is refused, as by kube-proxy.
follow_service_for_ever() {
    local rule=(-d "$service_address" -p tcp --dport 9618 -j GLIDEPOD-TEST)
    trap 'kill "$watcher" 2>/dev/null; exit' TERM
    in_env iptables -t nat -N GLIDEPOD-TEST
    in_env iptables -t nat -A PREROUTING "${rule[@]}"
    in_env iptables -t nat -A OUTPUT "${rule[@]}"
    in_env iptables -A FORWARD -d "$service_address" -p tcp -j REJECT
    in_env iptables -A OUTPUT -d "$service_address" -p tcp -j REJECT
    while true; do
        follow_service
        sleep 1
    done
}

pool_ready() { env_in_pool condor_status -schedd -af Name | grep . >/dev/null; }

deploy() {
    service_address=$(sed -E 's/.*https:\/\/([0-9.]+)\.[0-9]+".*/\1.200/' <<<"\"$(env_kubectl config view -o jsonpath='{.clusters[0].cluster.server}')\"")
    make_volumes && write_site || return
    env_kubectl apply -k "$env_manifests/base" >/dev/null || return
    as_named apply -f "$env_manifests/provisioner/namespace.yaml" >/dev/null || return
    wait_until 20 "a service account" in_system get serviceaccount default || return
    in_system run pool-secrets --image "$env_registry/glidepod/pool:dev" --restart Never --rm -i --quiet \
        --command -- pool-secrets </dev/null >"$GLIDEPOD_ENV/secrets" || return
    as_named create -f "$GLIDEPOD_ENV/secrets" >/dev/null || return
    follow_service_for_ever &
    follower=$!
    as_named apply -k "$GLIDEPOD_ENV/site" >/dev/null || return
    env_kubectl apply -f "$env_manifests/provisioner/nodes.yaml" >/dev/null || return
    wait_until 180 "the pool" pool_ready || return
    wait_until 120 "the provisioner" in_system rollout status deployment glidepod-provisioner --timeout 1s
}

# --- what there is -------------------------------------------------------------------

pilots() { env_kubectl get pods -l k8s-app=glidepod "$@"; }
no_pilots() { [[ -z $(pilots -o name) ]]; }
pilots_are() { [[ $(pilots -o name | wc -l) == "$1" ]]; }
leaves() { [[ -n $(env_kubectl get "$1" -o jsonpath='{.metadata.deletionTimestamp}') ]]; }  # POD

# The kubelet gives a pod its grace even where nothing of it runs.
none_stays() {  # IMAGE
    ! pilots -o jsonpath='{range .items[*]}{.metadata.deletionTimestamp}{" "}{.spec.containers[*].image}{"\n"}{end}' |
        grep -- "^ .*$1" >/dev/null
}

provisioners() { in_system get pods -l app.kubernetes.io/name=glidepod-provisioner -o name "$@"; }

# Names and addresses of the pods.
instances() {
    in_system get pods -l app.kubernetes.io/name=glidepod-provisioner \
        -o jsonpath='{range .items[*]}{"pod/"}{.metadata.name}{" "}{.status.podIP}{"\n"}{end}'
}

metrics_at() { curl -sf --max-time 5 "http://$1:8080/metrics"; }  # ADDRESS
# Not by grep -q, which ends at the first match and leaves curl with an error.
leads() { [[ $(metrics_at "$1") == *$'\nglidepod_provisioner_leader 1'* ]]; }  # ADDRESS

the_leader() {  # its name and address
    local pod address
    while read -r pod address; do
        ! leads "$address" || { echo "$pod $address"; return; }
    done < <(instances)
    return 1
}

leader() { local found; found=$(the_leader) && echo "${found% *}"; }
another_leads() { local now; now=$(leader) && [[ $now != "$1" ]]; }

# Of the leader; for a moment there may be none.
metric() {  # NAME
    local deadline=$((SECONDS + 30)) value=""
    until [[ -n $value ]] || ((SECONDS >= deadline)); do
        value=$(metrics_at "$(the_leader | cut -d' ' -f2)" | sed -n "s/^glidepod_provisioner_$1 //p")
    done
    echo "$value"
}

metric_is() { [[ $(metric "$1") == "$2" ]]; }
is_blind() { metric_is blind 1; }
sees_all() { metric_is blind 0; }
status_of() { in_system exec "$(leader)" -- provisioner status --file /run/provisioner/status.json "$@"; }
status_says() { grep -- "$1" <<<"$(status_of)" >/dev/null; }  # blind, it ends with a code of its own

plan_says() {
    in_system exec deploy/glidepod-provisioner -- provisioner plan | grep -- "$1" >/dev/null
}

leader_says() { in_system logs "$(leader)" | grep -- "$1" >/dev/null; }

why_at() {  # PROVISIONER JOB
    in_system exec "$1" -- provisioner why "$2" --lease glidepod-provisioner 2>/dev/null
}

# What it says first of a job, and its exit code.
why_is() {  # JOB CODE KEY [WORDS]
    local answer code
    answer=$(why_at "$(leader)" "$1")
    code=$?
    equal "$code" "$2" && grep -q "^1\. .* \[$3\]$" <<<"$answer" && contains "$answer" "${4-}"
}

# Of this job or, as a pod has one of them in ten minutes, of one before. kubectl finds events by their pod's uid.
bound_is_told() {
    env_kubectl describe pods -l k8s-app=glidepod | grep "Normal *Bound .*glidepod-provisioner *job [0-9.]* of [a-z]* runs in payload-"
}

# --- settings ------------------------------------------------------------------------

configure() {  # [LINE...]
    settings "$@" >"$GLIDEPOD_ENV/site/provisioner.conf"
    as_named apply -k "$GLIDEPOD_ENV/site" >/dev/null
}

read_count() { metric 'settings_read_total{result="'"$1"'"}'; }

# The kubelet looks after config maps once a minute; an annotation makes it look now.
nudge() {
    local pod
    for pod in $(provisioners); do in_system annotate --overwrite "$pod" nudge="$RANDOM" >/dev/null; done
}

settings_were() { nudge; (($(read_count "$1") >= $2)); }  # used|refused COUNT

usual_settings() {
    local used
    used=$(read_count used)
    configure
    check "the usual settings are used again" wait_until 120 "that" settings_were used $((used + 1))
}

# --- the collector -------------------------------------------------------------------

stop_collector() { in_system scale statefulset central-manager --replicas 0 >/dev/null; }
start_collector() { in_system scale statefulset central-manager --replicas 1 >/dev/null; }

# --- jobs ----------------------------------------------------------------------------

# Twenty jobs whose exit codes are their numbers: three shapes, two images, two users.
submit_shapes() {
    clusters=()
    submit_shape alice busybox:1 1 100MB 7
    submit_shape bob tools:1 1 6GB 6
    submit_shape alice tools:1 2 100MB 4
    submit_shape bob busybox:1 2 100MB 3
}

submit_shape() {  # USER IMAGE CPUS MEMORY COUNT [COMMAND]
    local cluster
    cluster=$(env_as "$1" condor_submit -terse - <<END | sed -n '1s/\..*//p'
universe = vanilla
container_image = docker://$env_registry/demo/$2
executable = /bin/sh
transfer_executable = false
arguments = "-c 'cat /etc/image-name; ${6-:}; exit \$(Process)'"
log = \$(ClusterId).log
output = \$(ClusterId).\$(Process).out
should_transfer_files = yes
request_cpus = $3
request_memory = $4
request_disk = 1MB
queue $5
END
    )
    [[ -n $cluster ]] || return
    clusters+=("$1 $cluster $2 $5")
}

submit_plain() {  # COUNT [LINE]
    env_as alice condor_submit -terse - >/dev/null <<END
universe = vanilla
executable = /bin/true
transfer_executable = false
${2:-}
queue $1
END
}

# A job of one processor; two of them fit into a pod.
small_job() {  # USER IMAGE SCRIPT
    { shell_job "$env_registry/demo/$2" "$3"; echo queue; } | submit "$1"
}

jobs_ended() { local left; left=$(env_in_pool condor_q -allusers -af ClusterId) && [[ -z $left ]]; }

codes_are_right() {
    local entry user cluster image count got expected
    for entry in "${clusters[@]}"; do
        read -r user cluster image count <<<"$entry"
        expected=$(for ((code = 0; code < count; code++)); do echo "$code false $code"; done)
        got=$(history_of "$cluster" ExitBySignal ExitCode)
        equal "$got" "$expected" || return
        got=$(env_as "$user" sh -c "cat $cluster.*.out" </dev/null | sort | uniq -c | xargs)
        equal "$got" "$count demo/$image" || return
    done
}

runs_now() { env_in_pool condor_q "$1" -allusers -af JobStatus | grep -x 2 >/dev/null; }
has_started() { env_as "$1" grep -q "executing on host" "$2.log"; }
not_started() { ! has_started "$@"; }
held_with() { env_in_pool condor_q "$1" -allusers -af JobStatus HoldReason | grep -E "^5 .*$2" >/dev/null; }

# --- records -------------------------------------------------------------------------

# Writes down every pilot that there ever was: its name and shape.
record_pilots() {
    while true; do
        "$KUBECTL" --kubeconfig "$KUBECONFIG" --namespace "$env_namespace" get pods -l k8s-app=glidepod --watch \
            -o jsonpath='{.metadata.name}{" "}{.metadata.labels.PodCPUs}{" "}{.metadata.labels.PodMemory}{"\n"}' 2>/dev/null
        sleep 1
    done >>"$GLIDEPOD_ENV/pilots"
}

# Keeps what each pilot says, since finished ones are removed.
record_logs() {
    local pod log
    while sleep 1; do
        for pod in $(pilots -o name 2>/dev/null); do
            log=$GLIDEPOD_ENV/pilot-${pod#pod/}.log
            env_kubectl logs "$pod" -c pilot >"$log.new" 2>/dev/null && [[ -s $log.new ]] && mv "$log.new" "$log"
        done
    done
}

a_pilot_says() { cat "$GLIDEPOD_ENV"/pilot-*.log 2>/dev/null | grep -E -- "$1" >/dev/null; }
no_pilot_says() { ! a_pilot_says "$1"; }
