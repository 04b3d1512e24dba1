# shellcheck shell=bash
# 20 jobs of three shapes and two images by two users: pods of the right
# shapes appear, all jobs end with the right codes, pods end by themselves;
# a Prometheus scrapes it all, and no alert fires
#
# Needs: a leader that has made no pods: the first scene of a run.
# Leaves: nothing.

source "$e2e_source/prometheus.sh"
at_end prometheus_end

shapes_seen() { sort -u "$GLIDEPOD_ENV/pilots" | cut -d' ' -f2- | sort -u; }
pilots_seen() { cut -d' ' -f1 "$GLIDEPOD_ENV/pilots" | sort -u | wc -l; }

# The digest is the kubelet's word: it may come after glue's that the job runs.
place_is_told() {
    local seen
    seen=$(status_of --json | jq -c --arg job "$1" '.pods[] | select(.jobs[].job == $job) | [.node, .jobs[0].digest[:7], .jobs[0].container[:8]]')
    equal "$seen" "$(pilots -o json | jq -c '[[.items[].spec.nodeName | strings][0], "sha256:", "payload-"]')"
}

# Of each kind of pod that is there: CPUs, payload containers.
payloads_by_cpus() {
    pilots -o json | jq -c '[.items[] | [.metadata.labels.PodCPUs, ([.spec.containers[].name | select(startswith("payload-"))] | length)]] | unique'
}

# By `provisioner status`: the slot's ad and the pod, put together.
is_seen_running() {
    local job result=0
    clusters=()
    submit_shape bob tools:1 1 100MB 1 'sleep 240' || return
    job=$(cut -d' ' -f2 <<<"${clusters[0]}").0
    wait_until 180 "that" status_says " $job *bob *RUNNING [0-9]* [a-z]* *$env_registry/demo/tools:1 *\\(fresh\\|switched\\|warm\\)" || result=1
    wait_until 60 "its place" place_is_told "$job" || result=1
    status_of
    wait_until 90 "its event" bound_is_told || result=1
    # The group's disk, not the node's, with the 2 MiB of each payload container.
    equal "$(env_in_pool condor_status -constraint PartitionableSlot -af TotalDisk | sort -u)" 8004096 || result=1
    # The template's two payload containers are the jobs at a time. Spare ones are made ready meanwhile: two beyond the
    # jobs that the CPUs allow, so that a pod of one CPU has three containers and one of two has four.
    equal "$(env_in_pool condor_status -constraint PartitionableSlot -af GlidepodPayloadContainers | sort -u)" 2 || result=1
    equal "$(payloads_by_cpus | jq -c '[length > 0, . - [["1", 3], ["2", 4]]]')" '[true,[]]' || result=1
    env_as bob condor_rm "${job%.0}" >/dev/null || result=1
    return $result
}

test_jobs() {
    local targets
    : >"$GLIDEPOD_ENV/pilots"
    mapfile -t targets < <(instances | sed 's/.* //; s/$/:8080/')
    check "a Prometheus is there" prometheus_begin "$GLIDEPOD_ENV/prometheus" "${targets[@]}"
    check "an empty pool has no pilots" no_pilots
    check "20 jobs are submitted" submit_shapes
    check "they end" wait_until 300 "the end of the jobs" jobs_ended
    check "each with its own code, in its image" codes_are_right
    check "one more is seen where it runs, whose it is and in which image" is_seen_running
    check "pods had the three shapes" equal "$(shapes_seen)" $'1 4096\n1 8192\n2 4096'
    check "and were few ($(pilots_seen))" [ "$(pilots_seen)" -le 20 ]
    check "pods end by themselves and are removed" wait_until 180 "the end of the pods" no_pilots
    check "the leader counts what it made" \
        equal "$(metric pods_created_total)" "$(pilots_seen)"
    check "status tells the last cycle" wait_until 10 "that" status_says "0 pods to make"
    check "plan runs beside it" wait_until 30 "that" plan_says "schedds: 1 asked, 0 failed"
    check "Prometheus has both instances" wait_until 20 "that" prometheus_is 'sum(up)' 2
    check "of which one leads" prometheus_is 'sum(glidepod_provisioner_leader)' 1
    check "and the jobs' binds" prometheus_is 'sum(glidepod_binds_total{result="bound"}) > bool 0' 1
    check "what the panels ask for it answers" prometheus_knows_panels
    check "the alerts are evaluated" prometheus_rules_hold
    check "and none fires" prometheus_is 'count(ALERTS{alertstate="firing"}) or vector(0)' 0
    prometheus_end
}
