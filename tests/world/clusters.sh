# shellcheck shell=bash
# The cases of clusters/, each with a pilot of its own. Sourced by run.

# Ends by itself soon after its job: whether the pod then ends too is half of what a case asks.
leaves_soon="$(env_setting STARTD_NOCLAIM_SHUTDOWN 20)"

filter_of() {  # NAME
    [[ $env_kind == podhost || -z $(cases has "clusters/$1" loaded) ]] ||
        echo "(.spec.initContainers[], .spec.containers[]).image = \"$env_registry/loaded/pilot:dev\" |"
    if [[ -e $world/clusters/$1/pod.jq ]]; then
        sed "s|\$busybox|\"$env_pod_registry/demo/busybox:1\"|" "$world/clusters/$1/pod.jq"
    else
        echo .
    fi
}
pod_has_ended() {
    local phase
    phase=$(env_pod 2>/dev/null | jq -r .status.phase) || return 0
    [[ $phase == Succeeded || $phase == Failed || -z $phase ]]
}
# What the pilot, or its pod's status, says.
pilot_says() { { env_pilot_log 2>&1; env_pod | jq -r '.status | tojson'; } | grep -F -- "$1" >/dev/null; }

cluster_runs() {  # NAME
    local result=0 image env_pilot_manifest=${env_pilot_manifest-}
    [[ -z $(cases has "clusters/$1" manifest) ]] || env_pilot_manifest=$(cases has "clusters/$1" manifest)
    start_pilot "world-${1//./-}" "$(containers_of "$1")" "$leaves_soon | $(filter_of "$1")" || result=1
    if ((result == 0)); then
        case $(cases has "clusters/$1" loaded) in
            "")
                runs_in "$env_registry/demo/busybox:1" demo/busybox:1 || result=1
                runs_in "$env_registry/demo/busybox:2" demo/busybox:2 bob || result=1 ;;
            *) runs_loaded "$(cases has "clusters/$1" loaded)" || result=1 ;;
        esac
        [[ -z $(cases has "clusters/$1" collected) ]] || runs_collected || result=1
        for image in $(cases has "clusters/$1" image); do
            runs_in "$env_registry/world/$image:1" "world/$image" || result=1
        done
        wait_until 180 "the end of pod $env_pilot" pod_has_ended || {
            result=1
            env_pod | jq -c '.status | {phase, containers: [.containerStatuses[]? | {name, state}]}'
        }
    fi
    end_pilot 2>/dev/null
    return $result
}
# One container where it is to be seen what each next image costs.
containers_of() { if [[ -n $(cases has "clusters/$1" loaded)$(cases has "clusters/$1" manifest)$(cases has "clusters/$1" collected) ]]; then echo 1; else echo 2; fi; }  # NAME

# As `kind load`, `k3s ctr images import` and `minikube image load` do it: no registry has these names.
load_image() {  # IMAGE NAME
    local file=$GLIDEPOD_ENV/loaded.tar
    rm -f "$file"
    containers_conf_of_cache skopeo copy --quiet "containers-storage:localhost/$1" "docker-archive:$file:$2" || return
    if [[ $env_kind == podhost ]]; then
        env_podman load --quiet --input "$file" >/dev/null
    else
        in_env ctr --address "$env_cluster/containerd.sock" --namespace k8s.io images import "$file" >/dev/null
    fi
}
load_images() {
    local image
    for image in demo/busybox:1 demo/busybox:2; do load_image "$image" "$env_pod_registry/loaded/${image#demo/}" || return; done
    env_push demo/busybox:1 "$env_registry/loaded/not:1" || return  # a registry has it, and that is all
    [[ $env_kind == podhost ]] || load_image "$env_pilot_image" "$env_registry/loaded/pilot:dev"
}
# What the cases want on the node or in its registry.
have_images() {
    local name image loaded=no with=()
    for name in "${clusters[@]}"; do
        [[ -z $(cases has "clusters/$name" collected) ]] || env_push demo/busybox:1 "$env_registry/collected/busybox:1" || return
        [[ -z $(cases has "clusters/$name" loaded) ]] || loaded=yes
        for image in $(cases has "clusters/$name" image); do
            [[ " ${images[*]} " == *" $image "* ]] || with+=("$image")
        done
    done
    ((${#with[@]} == 0)) || in_env python3 -B "$world/images.py" "$env_registry" "$GLIDEPOD_ENV/programs" "${with[@]}" >/dev/null || return
    [[ $loaded == no ]] || load_images
}
# Images that are on the node come and go, as often as the kubelet's pause grows; one that is not there is no failure of the
# pilot's. ("never": nothing may be pulled.)
runs_loaded() {  # HOW
    local from=$env_pod_registry/loaded result=0 round
    for round in 1 2 3; do
        runs_in "$from/busybox:1" demo/busybox:1 || result=1
        runs_in "$from/busybox:2" demo/busybox:2 bob || result=1
    done
    echo "   $(env_pilot_log | grep -c event=name_again) switches to a name that came again"
    if [[ $1 == never ]]; then
        image_is_refused "$env_pod_registry/loaded/not:1" "is not present with pull policy of Never" || result=1
    else
        image_is_refused "$from/gone:1" "$env_not_found" || result=1
    fi
    runs_in "$from/busybox:1" demo/busybox:1 || result=1
    equal "$(env_in_pool condor_status -constraint "K8SPodName == \"$env_pilot\" && DynamicSlot =!= True" -af GlidepodFailures)" 0 || result=1
    return $result
}

# The names of an image that no container runs, as a kubelet short of disk removes it.
collect_image() {  # REPOSITORY
    if [[ $env_kind == podhost ]]; then
        env_podman untag "$1:1" "$1:1" && ! env_podman image exists "$1:1"
    else
        local names containerd=(in_env ctr --address "$env_cluster/containerd.sock" --namespace k8s.io images)
        mapfile -t names < <("${containerd[@]}" ls -q | grep "^$1[:@]")
        "${containerd[@]}" rm --sync "${names[@]}" >/dev/null && ! "${containerd[@]}" ls -q | grep "^$1[:@]"
    fi
}
runs_collected() {
    local image=$env_registry/collected/busybox result=0
    runs_in "$image:1" demo/busybox:1 && runs_in "$env_registry/demo/busybox:2" demo/busybox:2 bob && collect_image "$image" &&
        runs_in "$image:1" demo/busybox:1 || result=1
    equal "$(env_pilot_log | grep -c "event=switch .*image=$image.*@sha256")" 1 || result=1
    equal "$(env_pilot_log | grep -c event=bind_failed)" 0 || result=1
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
minor_of() { env_kubectl version -o json 2>/dev/null | jq -r '.serverVersion.gitVersion | split(".")[1]'; }

cluster_case() {  # NAME
    local name=$1 expected key minor result
    expected=$(cases has "clusters/$name" "expect $where")
    [[ -n $expected ]] || expected=$(cases has "clusters/$name" expect)
    for key in webhook deleter hook; do
        [[ -z $(cases has "clusters/$name" $key) ]] || { skip_test "a cluster of its own is wanted"; return; }
    done
    key=$(cases has "clusters/$name" containerd)
    if [[ -n $key && $(env_kubectl get nodes -o jsonpath='{.items[0].status.nodeInfo.containerRuntimeVersion}') != "containerd://$key"* ]]; then
        skip_test "containerd $key is wanted"
        return
    fi
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
