# shellcheck shell=bash
# a node on which pilots fail gets none for a while, also from another
# leader
#
# Needs: no pods.
# Leaves: another leader.

# That node is in the API only: of each pod that it gets it says what a kubelet says that refuses one. The scheduler, the
# provisioner and the node that works are real.

bad_node=node-that-refuses
refuser=""   # the process that refuses its pods
cordoned=""  # the node that works, while it takes none
at_end remove_bad_node

put_status() { as_named replace --raw "$1/status" -f - >/dev/null; }  # PATH, with the object on standard input

make_bad_node() {
    as_named create -f - >/dev/null <<END || return
apiVersion: v1
kind: Node
metadata:
  name: $bad_node
  labels: {kubernetes.io/hostname: $bad_node, kubernetes.io/os: linux, kubernetes.io/arch: amd64}
spec:
  taints: [{key: example.org/refuses, effect: NoSchedule}]
END
    refuse_for_ever &
    refuser=$!
}

# Is ready, and has room for everything; pods that do not tolerate its taint stay away.
seems_ready() {
    as_named get node "$bad_node" -o json | jq --arg now "$(date -u +%FT%TZ)" '
        {cpu: "64", memory: "256Gi", "ephemeral-storage": "1Ti", pods: "110"} as $room
        | .status = {capacity: $room, allocatable: $room, conditions: [{type: "Ready", status: "True",
            reason: "KubeletReady", message: "for a test", lastHeartbeatTime: $now, lastTransitionTime: $now}]}' |
        put_status "/api/v1/nodes/$bad_node"
}

refuse_for_ever() {
    local pod
    while sleep 1; do
        seems_ready
        for pod in $(env_kubectl get pods -o name --field-selector "spec.nodeName=$bad_node,status.phase=Pending"); do
            env_kubectl get "$pod" -o json | jq '.status.phase = "Failed" | .status.reason = "UnexpectedAdmissionError"
                | .status.message = "Allocate failed for a test, which is unexpected"' |
                put_status "/api/v1/namespaces/$env_namespace/${pod/#pod/pods}"
        done
    done 2>/dev/null
}

# Nodes as they were.
remove_bad_node() {
    [[ -z $refuser ]] || kill "$refuser" 2>/dev/null
    refuser=""
    as_named delete --ignore-not-found node "$bad_node" >/dev/null 2>&1
    [[ -z $cordoned ]] || as_named uncordon "$cordoned" >/dev/null
    cordoned=""
}

is_ready() { [[ $(as_named get node "$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}') == True ]]; }
a_job_runs() { env_in_pool condor_q -allusers -af JobStatus | grep -x 2 >/dev/null; }
nodes_of_pilots() { pilots -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort | xargs; }
one_job_left() { local left; left=$(env_in_pool condor_q -allusers -af ProcId) && (($(wc -w <<<"$left") <= 1)); }

# Those that wait are kept from the node by what the scheduler obeys.
kept_from() {  # NODE
    pilots -o json | jq -e --arg node "$1" '[.items[] | select(.spec.nodeName == null)
        | .spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
        | all(any(.matchExpressions[]; .key == "kubernetes.io/hostname" and .operator == "NotIn" and (.values | index($node))))]
        | length > 0 and all' >/dev/null
}

test_nodes() {
    local used good first failed before
    used=$(read_count used)
    configure "tolerations_list=example.org/refuses" "[glidepod]" "breaker_failures=5" "breaker_first_pause=120"
    check "pilots tolerate a node that refuses them" wait_until 120 "that" settings_were used $((used + 1))
    check "none is there" wait_until 120 "that" no_pilots
    clusters=()
    submit_shape alice busybox:1 1 100MB 1 "sleep 240"
    check "a job runs" wait_until 120 "that" a_job_runs
    good=$(nodes_of_pilots)
    check "on one node" test -n "$good"
    before=$(metric pods_created_total)
    cordoned=$good
    as_named cordon "$good" >/dev/null
    check "there is a node that refuses each pod" make_bad_node
    check "  and seems ready" wait_until 30 "that" is_ready "$bad_node"
    submit_shape alice busybox:1 1 100MB 2
    check "after three pilots it is avoided, as the log says" \
        wait_until 120 "that" leader_says "event=node_avoided node=$bad_node failed=3 pause_s=120"
    check "  so does the status, with the number" status_says "node avoided until .*: $bad_node: 3 pilots failed in a row"
    check "  and the metric" metric_is nodes_avoided 1
    check "the next pod is kept from it" wait_until 60 "that" kept_from "$bad_node"
    failed=$(($(metric pods_created_total) - before))
    check "no more than one was made beside those three and this one ($failed in all)" test "$failed" -le 5
    check "the breaker is closed, since the image is good" metric_is breakers_open 0
    first=$(leader)
    in_system delete "$first" --wait=false >/dev/null
    check "another provisioner leads" wait_until 30 "that" another_leads "$first"
    check "  and avoids it too" wait_until 30 "that" status_says "node avoided until .*: $bad_node:"
    as_named uncordon "$good" >/dev/null
    check "the jobs run on the other node" wait_until 180 "their end" one_job_left
    check "  and no pilot on this one" equal "$(nodes_of_pilots | tr ' ' '\n' | grep -c "^$bad_node$")" 0
    check "after its pause it is tried again" wait_until 150 "that" leader_says "event=node_tried_again node=$bad_node"
    remove_bad_node
    check "all jobs end" wait_until 300 "that" jobs_ended
    check "each with its own code" codes_are_right
    usual_settings
    check "pods end" wait_until 180 "the end of the pods" no_pilots
}
