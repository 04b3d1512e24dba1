# shellcheck shell=bash
# The cases of clusters/, each with a pilot of its own. Sourced by run.

# Ends by itself soon after its job: whether the pod then ends too is half of what a case asks.
leaves_soon="$(env_setting STARTD_NOCLAIM_SHUTDOWN 20)"

filter_of() {  # NAME
    [[ ! -e $world/clusters/$1/pod.jq ]] || sed "s|\$busybox|\"$env_pod_registry/demo/busybox:1\"|" "$world/clusters/$1/pod.jq"
}
pod_has_ended() {
    local phase
    phase=$(env_pod 2>/dev/null | jq -r .status.phase) || return 0
    [[ $phase == Succeeded || $phase == Failed || -z $phase ]]
}
# What the pilot, or its pod's status, says.
pilot_says() { { env_pilot_log 2>&1; env_pod | jq -r '.status | tojson'; } | grep -F -- "$1" >/dev/null; }

cluster_runs() {  # NAME
    local result=0
    start_pilot "world-${1//./-}" 2 "$leaves_soon | $(filter_of "$1")" || result=1
    if ((result == 0)); then
        runs_in "$env_registry/demo/busybox:1" demo/busybox:1 || result=1
        runs_in "$env_registry/demo/busybox:2" demo/busybox:2 bob || result=1
        wait_until 180 "the end of pod $env_pilot" pod_has_ended || {
            result=1
            env_pod | jq -c '.status | {phase, containers: [.containerStatuses[]? | {name, state}]}'
        }
    fi
    end_pilot 2>/dev/null
    return $result
}
cluster_refuses() {  # NAME WORDS
    local result=0 words
    env_pilot="world-${1//./-}"
    env_pilot_pod "$(env_wide 2) | $(filter_of "$1")" >"$GLIDEPOD_ENV/$env_pilot.json" || return
    if ! words=$(env_create_pod "$GLIDEPOD_ENV/$env_pilot.json" 2>&1); then
        contains "$words" "$2"
        return
    fi
    wait_until 120 "words of the pilot: $2" pilot_says "$2" || result=1
    end_pilot 2>/dev/null
    return $result
}

# What an administrator has put there, for one case at a time: a namespace's rules are for all of its pods.
apply_objects() {  # NAME
    [[ ! -e $world/clusters/$1/objects.yaml ]] || sed "s/NAMESPACE/$env_namespace/" "$world/clusters/$1/objects.yaml" | env_kubectl apply -f - >/dev/null
}
remove_objects() {  # NAME
    [[ -e $world/clusters/$1/objects.yaml ]] || return 0
    if grep '^kind: Namespace' "$world/clusters/$1/objects.yaml" >/dev/null; then
        env_kubectl label namespace "$env_namespace" pod-security.kubernetes.io/enforce- >/dev/null
    else
        env_kubectl delete --ignore-not-found -f "$world/clusters/$1/objects.yaml" >/dev/null
    fi
}
minor_of() { env_kubectl version -o json 2>/dev/null | jq -r '.serverVersion.minor | sub("[^0-9].*"; "")'; }

cluster_case() {  # NAME
    local name=$1 expected key minor result
    expected=$(cases has "clusters/$name" "expect $where")
    [[ -n $expected ]] || expected=$(cases has "clusters/$name" expect)
    for key in webhook deleter containerd loaded manifest image; do
        [[ -z $(cases has "clusters/$name" $key) ]] || { skip_test "a cluster of its own is wanted"; return; }
    done
    minor=$(cases has "clusters/$name" kubernetes)
    if [[ $env_kind == kubernetes && -n $minor ]] && (($(minor_of) < ${minor#1.})); then
        skip_test "Kubernetes $minor is wanted"
        return
    fi
    apply_objects "$name" || return
    case $expected in
        runs) cluster_runs "$name" ;;
        "refused "*) cluster_refuses "$name" "${expected#refused }" ;;
        "pilot ends "*) cluster_refuses "$name" "${expected#pilot ends }" ;;
        *) skip_test "not run yet: $expected" ;;
    esac
    result=$?
    remove_objects "$name"
    return $result
}
for name in "${clusters[@]}"; do eval "test_$name() { cluster_case '$name'; }"; done
