# shellcheck shell=bash
# provisioner, pilots and pool get another tag while a job runs, and go back
#
# Needs: no pods.
# Leaves: other instances, and the pool's pods made anew.

# One after the other, as docs/operate.md says: a job runs on, and a new one runs in a new pod of this tag.
go_to() {  # TAG JOB
    local tag=$1 long=$2 used job
    provisioner_tag=$tag
    write_site "k8s_image=$env_registry/glidepod/pilot:$pilots_tag" && as_named apply -k "$GLIDEPOD_ENV/site" >/dev/null
    check "the provisioner of $tag" wait_until 180 "it" has_tag deployment/glidepod-provisioner "$tag"
    check "  leads, and sees the pool" wait_until 60 "that" sees_all
    used=$(read_count used)
    pilots_tag=$tag
    configure "k8s_image=$env_registry/glidepod/pilot:$tag"
    check "the pilots' image of $tag" wait_until 120 "that" settings_were used $((used + 1))
    check "  with no pod but the job's" wait_until 180 "that" pilots_are 1
    job=$(small_job bob tools:1 "cat /etc/image-name; sleep 5; exit 3")
    check "  a new job runs" wait_until 180 "a start" has_started bob "$job"
    check "  in a pod of that image" contains "$(pilots -o jsonpath='{.items[*].spec.containers[0].image}')" "/pilot:$tag"
    check "  and ends" finished bob "$job" 60
    check "  with its code" equal "$(history_of "$job" ExitCode)" "0 3"
    pool_tag=$tag
    write_site "k8s_image=$env_registry/glidepod/pilot:$tag" && as_named apply -k "$GLIDEPOD_ENV/site" >/dev/null
    check "the pool of $tag: central manager" wait_until 180 "it" has_tag statefulset/central-manager "$tag"
    check "  access point" wait_until 180 "it" has_tag statefulset/access-point "$tag"
    check "  with its queue" wait_until 120 "it" pool_ready
    check "  in which the job still runs" wait_until 120 "that" runs_now "$long"
}

has_tag() {  # WORKLOAD TAG
    in_system rollout status "$1" --timeout 2s &&
        [[ $(in_system get "$1" -o jsonpath='{.spec.template.spec.containers[0].image}') == *":$2" ]]
}

# The next version is this one by another name.
test_upgrade() {
    local long pilots_tag=dev name
    for name in pilot pool provisioner; do
        check "$name has another tag" env_push "glidepod/$name:dev" "$env_registry/glidepod/$name:next" || return
    done
    long=$(small_job alice busybox:1 "sleep 7654321; exit 5")
    check "a job runs" wait_until 120 "a start" runs_now "$long"
    go_to next "$long"
    go_to dev "$long"
    # shellcheck disable=SC2046 # several
    in_env kill $(marked 7654321)
    check "the job of before it all ends" finished alice "$long" 120
    check "  with its code, after one start" equal "$(history_of "$long" ExitCode NumJobStarts)" "0 5 1"
    check "no instance of the provisioner has restarted" equal "$(provisioners -o \
        jsonpath='{.items[*].status.containerStatuses[*].restartCount}')" "0 0"
    usual_settings
    check "pods end" wait_until 180 "the end of the pods" no_pilots
}
