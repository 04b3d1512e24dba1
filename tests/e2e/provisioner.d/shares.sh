# shellcheck shell=bash
# what limits leave is shared by owner, priority and the quota of a group,
# with a real negotiator
#
# Needs: no pods, no jobs.
# Leaves: the users carol and dave on the access point.

# Pods of the scene have no node, so only the queue decides.

on_manager() { in_system exec -i central-manager-0 -- "$@"; }

# The negotiator's accounting ads, which the provisioner reads.
accounting_says() {  # NAME ATTRIBUTE VALUE: an extended regular expression
    env_in_pool condor_status -subsystem accounting -constraint "Name == \"$1\"" -af "$2" | grep -xE -- "$3" >/dev/null
}

waiting_are() {  # PODS_OF_ONE_CPU PODS_OF_TWO
    [[ $(pilots -o jsonpath='{range .items[*]}{.metadata.labels.PodCPUs}{"\n"}{end}' | sort | uniq -c | awk '{ print $2 ": " $1 }' | xargs) == "$*" ]]
}

# One user's jobs of one processor and thirty sizes of disk, another's of two processors and one size. All come at once:
# who comes first gets all that there is.
sizes_and_alike() {  # USER USER
    submit_shared "$1" 30 1 "\$(Process) * 1000000 + 9000000" "hold = true" && submit_shared "$2" 30 2 1MB "hold = true" &&
        env_in_pool condor_release -all >/dev/null
}

submit_shared() {  # USER COUNT CPUS DISK [LINE...]
    printf '%s\n' "universe = vanilla" "container_image = docker://$env_registry/demo/busybox:1" "executable = /bin/true" \
        "transfer_executable = false" "request_cpus = $3" "request_memory = 100MB" "request_disk = $4" "${@:5}" "queue $2" |
        env_as "$1" condor_submit -terse - >/dev/null
}

none_left() { env_in_pool condor_rm -all >/dev/null; wait_until 90 "the end of the pods" no_pilots; }

test_shares() {
    local used domain user told physics=("accounting_group = physics" "accounting_group_user = carol")
    domain=$(on_manager condor_config_val UID_DOMAIN </dev/null)
    for user in carol dave; do
        env_in_pool id "$user" >/dev/null 2>&1 || env_in_pool useradd --create-home --shell /bin/bash "$user"
    done
    printf '%s\n' "GROUP_NAMES = physics" "GROUP_QUOTA_physics = 3" "GROUP_ACCEPT_SURPLUS = False" "NEGOTIATOR_INTERVAL = 5" |
        on_manager sh -c 'cat >/etc/condor/config.d/99-shares.config && condor_reconfig' >/dev/null
    # Who has never had a slot, as dave, is not in the accountant's ads, and counts as a newcomer.
    submit_shared alice 1 1 1MB
    small_job bob busybox:1 "sleep 60" >/dev/null
    submit_shared carol 1 1 1MB "${physics[@]}"
    for user in "alice@$domain" "bob@$domain" "physics.carol@$domain"; do
        check "the pool's accountant knows $user" wait_until 180 "that" accounting_says "$user" Priority "[0-9.]+"
    done
    # The ads are of those who have jobs when there are slots.
    check "bob's priority gets three times worse" on_manager condor_userprio -setfactor "bob@$domain" 3000 </dev/null
    check "as its ads say" wait_until 60 "that" accounting_says "bob@$domain" PriorityFactor "(2999|3000).*"
    told=$SECONDS
    check "their jobs end" wait_until 180 "that" jobs_ended
    used=$(read_count used)
    configure "node_selectors_dict=example.org/room:none" "max_pods_per_cluster=20" \
        "[glidepod]" "disk_buckets=" "unschedulable_limit=0" "max_idle=8"
    check "no node takes pods, and eight may wait" wait_until 120 "that" settings_were used $((used + 1))
    check "the pods from before end" wait_until 180 "that" no_pilots
    sizes_and_alike alice dave
    check "alice's thirty sizes get what dave's one gets" wait_until 60 "that" waiting_are 1: 4 2: 4
    none_left
    # The provisioner asks every three minutes.
    told=$((190 - (SECONDS - told)))
    ((told <= 0)) || sleep "$told"
    sizes_and_alike alice bob
    check "bob gets a third of what alice gets" wait_until 60 "that" waiting_are 1: 6 2: 2
    none_left
    submit_shared carol 20 1 1MB "${physics[@]}"
    check "of a group with a quota of three cores three jobs count" wait_until 60 "that" plan_says "group_quota physics: 3 of 20 idle jobs count"
    check "and ask for one pod, not six" wait_until 60 "that" waiting_are 1: 1
    none_left
    on_manager condor_userprio -setfactor "bob@$domain" 1000 </dev/null >/dev/null
    on_manager sh -c 'rm /etc/condor/config.d/99-shares.config; condor_reconfig' </dev/null >/dev/null
    usual_settings
    check "pods end" wait_until 180 "the end of the pods" no_pilots
}
