# shellcheck shell=bash
# a pilot image that cannot be pulled
#
# Needs: no pods.
# Leaves: another leader, which remembers that the image none:1 failed.

follower_tells() {  # JOB WORDS
    local pod address
    while read -r pod address; do
        leads "$address" || { contains "$(why_at "$pod" "$1")" "$2"; return; }
    done < <(instances)
    return 1
}

test_breaker() {
    local good used created cluster first
    used=$(read_count used)
    configure "k8s_image=$env_registry/glidepod/none:1"
    check "an image that is not there is configured" wait_until 120 "that" settings_were used $((used + 1))
    created=$(metric pods_created_total)
    cluster=$(submit_shape alice busybox:1 1 100MB 20 >/dev/null; cut -d" " -f2 <<<"${clusters[-1]}")
    check "the breaker opens, and status tells why" wait_until 120 "that" status_says "breaker open"
    check "it is counted" [ "$(metric breakers_open)" -ge 1 ]
    check "an instance that does not lead tells of it too" wait_until 30 "that" follower_tells "$cluster.0" "[breaker]"
    sleep 20
    check "few pods are made for it" [ "$(($(metric pods_created_total) - created))" -le 5 ]
    check "they are seen as what they are" [ "$(metric 'pods{state="pull error"}')" -gt 0 ]
    first=$(leader)
    in_system delete "$first" --wait=false >/dev/null
    check "another one leads" wait_until 15 "another leader" another_leads "$first"
    check "and remembers that the breaker is open" wait_until 30 "that" status_says "breaker open"
    check "of its own it makes few pods too" [ "$(metric pods_created_total)" -le 2 ]
    used=$(read_count used)
    configure
    check "the good image again" wait_until 120 "that" settings_were used $((used + 1))
    check "the pods of the other one are asked to go at once" wait_until 15 "that" none_stays "$env_registry/glidepod/none:1"
    check "the jobs end" wait_until 240 "the end of the jobs" jobs_ended
    check "pods end" wait_until 180 "the end of the pods" no_pilots
}
