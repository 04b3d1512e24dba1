# shellcheck shell=bash
# what glidepod-debug collects, and that no secret is in it
#
# Needs: no pods.
# Leaves: nothing.

collect() {  # ARGUMENT... : into the folder debug
    rm -rf "$GLIDEPOD_ENV/debug"*
    KUBECTL="$KUBECTL --kubeconfig $KUBECONFIG" "$env_manifests/../provisioner/glidepod-debug" \
        --output "$GLIDEPOD_ENV/debug.tar.gz" "$@" && mkdir "$GLIDEPOD_ENV/debug" &&
        tar -xzf "$GLIDEPOD_ENV/debug.tar.gz" -C "$GLIDEPOD_ENV/debug" --strip-components 1
}

collected() {  # FILE [WORDS]
    grep -q -- "${2-}" "$GLIDEPOD_ENV/debug/$1" 2>/dev/null
}

nowhere() { ! grep -rqF -- "$1" "$GLIDEPOD_ENV/debug"; }  # WORDS
secret_value() { as_named get secret "$2" --namespace "$1" -o json | jq -r '.data[]' | head -n 1 | base64 -d; }  # NAMESPACE SECRET

test_debug() {
    local used pod secret="hunter2-of-the-site" token job
    used=$(read_count used)
    configure " ,SITE_PASSWORD:$secret"  # goes on with the last line, which is envs_dict
    check "an environment with a password is configured" wait_until 120 "that" settings_were used $((used + 1))
    # What somebody's program logs.
    token=eyJhbGciOiJIUzI1NiIsImtpZCI6IlBPT0wifQ.eyJzdWIiOiJnbGlkZXBvZEBwb29sIn0.c2lnbmF0dXJl
    env_kubectl run talker --image "$env_registry/demo/busybox:1" --restart Never -- sh -c "echo says $token; sleep 300" >/dev/null
    job=$(small_job alice busybox:1 "sleep 100")
    check "a pilot has it" wait_until 120 "that" runs_now "$job"
    pod=$(pilots -o jsonpath='{.items[0].metadata.name}')
    check "the archive is made" collect --job "$job.0" --pod "$pod" --pod talker
    check "  and only its owner reads it" equal "$(stat -c %a "$GLIDEPOD_ENV/debug.tar.gz")" 600
    check "  status, plan, and the lease" eval 'collected provisioner/status.json "$pod" && collected provisioner/plan.txt && collected provisioner/lease.json'
    check "  settings, without the value" eval 'collected provisioner/settings.txt sleep_time && collected provisioner/settings.txt "envs_dict = (hidden)"'
    check "  the provisioner's log" collected "provisioner/$(leader | sed s,pod/,,).log" event=cycle
    check "  why that job has no pilot, or has one" collected why.txt "$job.0"
    check "  the pilot's state and logs" eval 'collected "pilots/$pod/status.txt" && collected "pilots/$pod/pilot.log" event= && collected "pilots/$pod/payload-0.log" event='
    check "  the pod, with names of its environment" collected "pilots/$pod/pod.json" SITE_PASSWORD
    check "  and Events" collected cluster/events.txt "$pod"
    check "  but the password nowhere" nowhere "$secret"
    check "  nor a token that was logged" eval 'collected pilots/talker/talker.log "says .a token was here" && nowhere eyJ'
    check "  nor what is in a secret" eval 'nowhere "$(secret_value "$system" glidepod-pool-key)" && nowhere "$(secret_value "$env_namespace" glidepod-pool-token)"'
    check "what is not there is named" eval 'collect --pod nosuch && collected errors.txt nosuch && ! collected why.txt'
    check "an existing file is not written over" eval '! "$env_manifests/../provisioner/glidepod-debug" --output "$GLIDEPOD_ENV/debug.tar.gz"'
    check "a cluster that does not answer is named" \
        eval '! KUBECTL="$KUBECTL --server http://127.0.0.1:1" "$env_manifests/../provisioner/glidepod-debug" --output /dev/null/x'
    env_in_pool condor_rm -all >/dev/null
    env_kubectl delete pod talker --grace-period 1 --wait=false >/dev/null
    usual_settings
    check "pods end" wait_until 180 "the end of the pods" eval 'no_pilots && ! env_kubectl get pod talker'
}
