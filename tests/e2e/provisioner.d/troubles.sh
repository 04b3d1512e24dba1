# shellcheck shell=bash
# ten that operators meet, each of which somebody names in a line
#
# Needs: no jobs; a node of its own, whose containerd it tells of a registry.
# Leaves: nothing.

# Four of the ten are in other scenes: an image that cannot be had and a pod without a node in `why`, one that does not go
# in `back`, a collector that is away for long in `outages`.

why_says() { contains "$(why_at "$(leader)" "$1")" "$2"; }  # JOB WORDS
event_says() { env_kubectl get events -o jsonpath='{range .items[*]}{.reason}{" "}{.message}{"\n"}{end}' | grep -- "$1" >/dev/null; }

# Pods may be neither made nor counted: no reading of quotas knows of one with a scope.
trouble_quota() {
    local job
    env_kubectl create quota scoped --hard=pods=0 --scopes=NotTerminating >/dev/null
    job=$(small_job alice busybox:1 true)
    check "a quota: status has the API server's words" wait_until 60 "that" status_says "problem: .*exceeded quota: scoped"
    check "  and why says who can help" wait_until 30 "that" why_says "$job.0" "[quota]"
    env_kubectl delete quota scoped >/dev/null
    check "  without it the job runs" finished alice "$job" 120
}

trouble_right() {
    local job
    check "the pods end" wait_until 120 "the end of the pods" no_pilots
    env_kubectl patch role glidepod-provisioner --type json -p '[{"op": "remove", "path": "/rules/0/verbs/0"}]' >/dev/null
    job=$(small_job alice busybox:1 true)
    check "a missing right: status names verb and resource" \
        wait_until 60 "that" status_says 'problem: .*cannot create resource "pods"'
    check "  and why says it of the job" wait_until 30 "that" why_says "$job.0" 'cannot create resource "pods"'
    as_named apply -k "$GLIDEPOD_ENV/site" >/dev/null
    check "  with it the job runs" finished alice "$job" 120
}

# Stands in for a registry that has had enough of us; containerd reads the folder at each pull.
start_limited_registry() {
    local address=${env_registry%:*}
    limited=$address:5002
    mkdir -p "$env_cluster/registries/$limited" || return
    printf 'server = "http://%s"\n[host."http://%s"]\ncapabilities = ["pull", "resolve"]\n' "$limited" "$limited" \
        >"$env_cluster/registries/$limited/hosts.toml"
    in_env timeout 300 python3 -c '
import http.server, sys
class Limited(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(429)
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_HEAD = do_GET
http.server.ThreadingHTTPServer((sys.argv[1], 5002), Limited).serve_forever()' "$address" >/dev/null 2>&1 &
}

trouble_pull_limit() {
    local job
    start_limited_registry
    check "a registry that refuses by number is there" wait_until 60 "it" eval \
        '[[ $(in_env curl -s -o /dev/null -w "%{http_code}" "http://$limited/v2/") == 429 ]]'
    job=$({ shell_job "$limited/demo/busybox:1" true; echo queue; } | submit alice)
    check "a pull limit: status has the registry's words at the job" \
        wait_until 120 "that" status_says " $job.0 .*SWITCHING .*$limited/demo/busybox:1.*429 Too Many Requests"
    check "  the job is not held for it" env_job_has "$job.0" JobStatus 2
    check "  and an event tells it" wait_until 60 "that" event_says "BindWaits .*429 Too Many Requests"
    env_in_pool condor_rm "$job" >/dev/null
}

token_secret() { as_named get secret glidepod-provisioner-token --namespace "$system" -o jsonpath='{.data.provisioner}'; }

put_token() {  # BASE64
    in_system patch secret glidepod-provisioner-token -p "{\"data\": {\"provisioner\": \"$1\"}}" >/dev/null
}

# shellcheck disable=SC2016 # the shell in the pool, which has the key, has its own words
token_for() {  # SECONDS
    env_in_pool sh -c 'condor_token_create -identity "provisioner@$(condor_config_val TRUST_DOMAIN)" -authz READ -lifetime "$1"' sh "$1" | base64 -w 0
}

trouble_token() {
    local good
    good=$(token_secret)
    put_token "$(token_for 1)"
    check "an expired token: status names it" wait_until 150 "that" eval \
        'nudge; status_says "problem: the token provisioner has expired at"'
    # The look before, at the same token, may have been in time.
    check "  blind, with HTCondor's words" wait_until 60 "that" eval \
        'nudge; status_says "BLIND: .*Failed to authenticate using IDTOKENS"'
    put_token "$good"
    check "  with a good one it sees again" wait_until 150 "that" eval 'nudge; sees_all'
}

trouble_collector() {
    stop_collector
    check "no collector: blind, and status names it" wait_until 90 "that" status_says "BLIND: .*$service_address"
    start_collector
    check "  which comes back" wait_until 120 "sight" sees_all
    check "  and the access point with it" wait_until 120 "the pool" pool_ready
}

trouble_memory() {
    local job
    configure "[glidepod]" "memory_buckets=1024,4096,8192"  # of which a container may have 1,000 MiB more
    check "small pods are configured" wait_until 120 "that" eval 'nudge; leader_says "change=.*+ .*memory_buckets = 1024"'
    # A kubelet of 1.20 ends a pod with an image that it cannot pull when its pilot is given up.
    check "the pods end" wait_until 300 "the end of the pods" no_pilots
    job=$(small_job bob busybox:1 "x=\`yes | head -c 3000000000\`")
    small_job bob busybox:1 "sleep 400" >/dev/null  # after which the pilot goes
    check "out of memory: the job's hold has request and peak" wait_until 180 "a hold" held_with "$job" "memory"
    # The startd looks every 20 s, and the collector hears of it by the next update, 60 s later at most.
    check "  and so has an event of the pod" wait_until 150 "that" event_says "^OutOfResources put on hold: job $job.0: .*over memory limit"
    env_in_pool condor_rm -all >/dev/null
    configure
    check "the usual pods are configured" wait_until 120 "that" eval 'nudge; leader_says "change=.*- .*memory_buckets = 1024"'
}

# A node where no pilot gets its containers to switch: here, since none may.
trouble_black_hole() {
    local job
    check "the pods end" wait_until 120 "the end of the pods" no_pilots
    env_kubectl get rolebinding glidepod-pilot -o json >"$GLIDEPOD_ENV/pilots-right"
    env_kubectl delete rolebinding glidepod-pilot >/dev/null
    job=$(small_job alice busybox:1 true)
    check "a black hole: no job gets lost in it" wait_until 180 "an open breaker" status_says "breaker open"
    check "  status says where to look" status_says "UNREGISTERED .*kubectl logs glidepod-.* --container pilot"
    check "  where it is said" eval 'env_kubectl logs "$(pilots -o name | head -n 1)" --container pilot | grep "cannot get resource .*pods" >/dev/null'
    check "  why has it too" wait_until 90 "that" why_says "$job.0" "[breaker]"
    check "  and no pilot joined" equal "$(env_job "$job.0" NumJobStarts)" 0
    env_kubectl apply -f "$GLIDEPOD_ENV/pilots-right" >/dev/null 2>&1
    check "  when it is mended the job runs" finished alice "$job" 240
}

# The pool's own pods request little, and are not in the way.
trouble_preempted() {
    local job cpu
    job=$(small_job alice busybox:1 "sleep 45")
    check "a job runs" wait_until 120 "a start" runs_now "$job"
    cpu=$(as_named get nodes -o jsonpath='{.items[0].status.allocatable.cpu}')
    as_named apply -f - >/dev/null <<END
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: glidepod-test-first}
value: 1000
---
apiVersion: v1
kind: Pod
metadata: {name: preemptor, namespace: $system}
spec:
  priorityClassName: glidepod-test-first
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: $env_registry/demo/busybox:1
    command: [sleep, "600"]
    resources: {requests: {cpu: $((cpu * 1000 - 300))m}}
END
    check "a preemption: an event of the pod names it" wait_until 60 "that" event_says "^Preempted "
    check "  the job's log says that it was evicted" wait_until 180 "that" env_as alice grep -q "evicted" "$job.log"
    check "  why says that no node has room" wait_until 120 "that" why_says "$job.0" "Insufficient cpu"
    in_system delete pod preemptor --wait=false >/dev/null
    as_named delete priorityclass glidepod-test-first >/dev/null
    check "  with room the job runs to its end" finished alice "$job" 240
    check "  started twice, ended once" equal "$(history_of "$job" NumShadowStarts ExitCode)" "0 2 0"
}

test_troubles() {
    local limited=""
    trouble_quota
    trouble_right
    trouble_pull_limit
    trouble_memory
    trouble_preempted
    trouble_token
    trouble_collector
    trouble_black_hole
    env_in_pool condor_rm -all >/dev/null
    check "pods end" wait_until 180 "the end of the pods" no_pilots
}
