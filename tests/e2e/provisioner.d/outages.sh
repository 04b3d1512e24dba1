# shellcheck shell=bash
# 20 jobs, while the API server, the collector and the schedd are stopped in
# turn
#
# Needs: no pods; a node of its own, whose API server it stops; instances that have never been started again.
# Leaves: another leader.

stop_schedd() { in_system scale statefulset access-point --replicas 0 >/dev/null; }
start_schedd() { in_system scale statefulset access-point --replicas 1 >/dev/null; }
stop_api() { env_node_stop kube-apiserver KILL; }
start_api() { env_node_start kube-apiserver; }
api_answers() { env_kubectl get --raw /readyz; }
# The addresses of both instances, for when the API cannot be asked.
instance_ready() { curl -sf --max-time 5 "http://$1:8080/readyz"; }

no_leader() {
    local address
    for address in "${addresses[@]}"; do ! leads "$address" || return; done
}

fails_all() {
    local address
    for address in "${addresses[@]}"; do ! "$1" "$address" >/dev/null || return; done
}

test_pilots_exist() { ! no_pilots; }
makes_nothing() { is_blind || metric_is idle_jobs 0; }

pod_condition() {
    [[ $(in_system get "$1" -o jsonpath="{.status.conditions[?(@.type=='$2')].status}") == "$3" ]]
}

not_ready() {
    wait_until 30 "that" pod_condition "$1" Ready False
}

test_outages() {
    local before
    check "20 jobs are submitted" submit_shapes
    wait_until 60 "a first pod" test_pilots_exist
    # The API server: the leader cannot renew its lease and stops leading.
    mapfile -t addresses < <(in_system get pods -l app.kubernetes.io/name=glidepod-provisioner \
        -o jsonpath='{range .items[*]}{.status.podIP}{"\n"}{end}')
    stop_api
    check "without the API server nobody leads any more" wait_until 40 "the end of the lease" no_leader
    sleep "$outage"
    check "and nobody is ready" fails_all instance_ready
    start_api
    check "the API server is back" wait_until 60 "the API" api_answers
    check "and one leads again" wait_until 60 "a leader" leader
    # The collector: blind, and no pod is made.
    stop_collector
    check "without the collector it is blind" wait_until 60 "blindness" is_blind
    before=$(metric pods_created_total)
    sleep "$outage"
    check "and makes no pods" equal "$(metric pods_created_total)" "$before"
    check "the pod is not ready" not_ready "$(leader)"
    start_collector
    check "it sees again" wait_until 120 "sight" sees_all
    # The schedd: its jobs are unknown, which is not the same as none.
    stop_schedd
    check "without the schedd it is blind or has nothing to do" wait_until 90 "that" makes_nothing
    before=$(metric pods_created_total)
    sleep "$outage"
    check "and makes no pods" equal "$(metric pods_created_total)" "$before"
    start_schedd
    check "the queue is back" wait_until 120 "the pool" pool_ready
    check "all jobs end" wait_until 420 "the end of the jobs" jobs_ended
    check "each with its own code, in its image" codes_are_right
    check "pods end by themselves and are removed" wait_until 180 "the end of the pods" no_pilots
    check "the provisioners have not restarted" equal "$(provisioners -o \
        jsonpath='{.items[*].status.containerStatuses[*].restartCount}')" "0 0"
}
