# shellcheck shell=bash
# the leader is deleted, then killed
#
# Needs: two instances.
# Leaves: another leader; an instance that has been started again.

# At once, without a chance to give the lease back.
kill_provisioner() {  # POD
    # shellcheck disable=SC2016 # the shell on the node has its own variables
    in_env sh -c 'for p in /proc/[0-9]*; do
            [ "$(cat "$p/comm" 2>/dev/null)" != provisioner ] || ! grep -q "$1" "$p/cgroup" || kill -KILL "${p#/proc/}"
        done' sh "$(in_system get "$1" -o jsonpath='{.metadata.uid}')"
}

one_leads() {
    local address count=0
    while read -r _ address; do
        ! leads "$address" || count=$((count + 1))
    done < <(instances)
    equal "$count" 1
}

lease_remembers() {
    in_system get lease glidepod-provisioner -o jsonpath='{.metadata.annotations.glidepod\.io/memory}' |
        jq -e '.version == 1' >/dev/null
}

test_leader() {
    local first second
    first=$(leader)
    check "what it remembers stands in its lease" wait_until 30 "that" lease_remembers
    in_system delete "$first" --wait=false >/dev/null
    check "a leader that is deleted hands over at once" wait_until 15 "another leader" another_leads "$first"
    second=$(leader)
    check "and the next one goes on from that" wait_until 10 "that" leader_says "event=memory_used"
    check "both are ready again" wait_until 120 "that" \
        in_system rollout status deployment glidepod-provisioner --timeout 1s
    kill_provisioner "$second"
    check "one that is killed is followed when its lease has ended" wait_until 60 "another leader" leader
    check "without a second one" one_leads
}
