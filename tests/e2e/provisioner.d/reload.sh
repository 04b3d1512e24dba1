# shellcheck shell=bash
# settings change, wrongly and rightly
#
# Needs: nothing.
# Leaves: nothing.

test_reload() {
    local used refused job
    used=$(read_count used) refused=$(read_count refused)
    check "changed settings are applied" configure "max_submit_pods_per_cluster=7"
    check "and noticed" wait_until 120 "that" settings_were used $((used + 1))
    check "what changed is told" wait_until 20 "that" leader_says 'change="+ \[k8s\] max_submit_pods_per_cluster = 7"'
    configure "max_submit_pods_per_cluster=seven"
    check "wrong ones are refused" wait_until 120 "that" settings_were refused $((refused + 1))
    check "and why" wait_until 20 "that" leader_says "event=settings_not_used why=.*seven"
    check "the leader goes on" wait_until 20 "that" sees_all
    configure "condor_host=127.0.0.1:9618,$service_address" "[htcondor]" "pool=127.0.0.1:9618,$service_address"
    check "two collectors are named, of which the first is down" wait_until 120 "that" settings_were used $((used + 2))
    check "the other one is asked" wait_until 60 "that" sees_all
    job=$(small_job alice busybox:1 "cat /etc/image-name")
    check "and pilots join by it" finished alice "$job" 180
    configure
    check "good ones are used again" wait_until 120 "that" settings_were used $((used + 3))
    check "pods end" wait_until 180 "the end of the pods" no_pilots
}
