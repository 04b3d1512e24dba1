# shellcheck shell=bash
# The cases of clusters/, each with a pilot of its own. Sourced by run.

source "$world/../e2e/admission.sh"

# Ends by itself soon after its job: whether the pod then ends too is half of what a case asks.
leaves_soon="$(env_setting STARTD_NOCLAIM_SHUTDOWN 20)"
# Jobs that come one after the other leave gaps in which the startd, which looks now and then, may see no claim each time.
leaves_later="$(env_setting STARTD_NOCLAIM_SHUTDOWN 120)"

filter_of() {  # NAME
    [[ $env_kind == podhost || -z $(cases has "clusters/$1" loaded) ]] ||
        echo "(.spec.initContainers[], .spec.containers[]).image = \"$env_registry/loaded/pilot:dev\" |"
    if [[ -e $world/clusters/$1/pod.jq ]]; then
        sed "s|\$busybox|\"$env_pod_registry/demo/busybox:1\"|" "$world/clusters/$1/pod.jq"
    else
        echo .
    fi
    [[ -z $(cases has "clusters/$1" webhook) ]] || echo "| $admitted"
}
pod_has_ended() {
    local phase
    phase=$(env_pod 2>/dev/null | jq -r .status.phase) || return 0
    [[ $phase == Succeeded || $phase == Failed || -z $phase ]]
}
# What the pilot, or its pod's status, says.
pilot_says() { { env_pilot_log 2>&1; env_pod | jq -r '.status | tojson'; } | grep -F -- "$1" >/dev/null; }

cluster_runs() {  # NAME
    local result=0 image leaves=$leaves_soon env_pilot_manifest=${env_pilot_manifest-}
    [[ -z $(cases has "clusters/$1" loaded) ]] || leaves=$leaves_later
    [[ -z $(cases has "clusters/$1" manifest) ]] || env_pilot_manifest=$(cases has "clusters/$1" manifest)
    start_pilot "world-${1//./-}" "$(containers_of "$1")" "$leaves | $(filter_of "$1")" || result=1
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
        [[ -z $(cases has "clusters/$1" says) ]] || pilot_says "$(cases has "clusters/$1" says)" || { echo "   the pilot never said so"; result=1; }
        wait_until 180 "the end of pod $env_pilot" pod_has_ended || {
            result=1
            env_pod | jq -c '.status | {phase, containers: [.containerStatuses[]? | {name, state}]}'
        }
        [[ -z $(cases has "clusters/$1" ends) ]] || equal "$(env_pod | jq -r .status.phase)" "$(cases has "clusters/$1" ends)" || result=1
    fi
    end_pilot 2>/dev/null
    return $result
}
# A job is told these words, and neither its pilot nor another's job has a disadvantage of it.
cluster_tells() {  # NAME WORDS
    local job bad=$env_registry/demo/busybox:1 good=$env_registry/demo/busybox:2 hook result=0
    hook=$(cases has "clusters/$1" hook)
    if [[ -n $hook ]]; then bad=$env_registry/world/${hook#*/}:1; else good=$env_registry/demo/busybox@$(digest_of demo/busybox 2) || return; fi
    start_pilot "world-$1" 1 "$(filter_of "$1")" || return
    job=$({ shell_job "$bad" true; echo queue; } | submit_here alice)
    wait_until 300 "words for job $job: $2" job_is_told "$job" "$2" || result=1
    runs_in "$good" demo/busybox:2 bob || result=1
    equal "$(env_in_pool condor_status -constraint "K8SPodName == \"$env_pilot\" && DynamicSlot =!= True" -af GlidepodFailures)" 0 || result=1
    env_as alice condor_rm "$job" >/dev/null
    end_pilot 2>/dev/null
    return $result
}
job_is_told() { [[ $(env_as alice cat "$1.log") == *"$2"* ]]; }  # JOB WORDS
digest_of() {  # REPOSITORY TAG
    in_env curl -sfI -H 'Accept: application/vnd.oci.image.manifest.v1+json' "http://$env_registry/v2/$1/manifests/$2" |
        sed -n 's/^docker-content-digest: *\(sha256:[0-9a-f]*\).*/\1/Ip' | grep .
}

# The pilot's pod is deleted at some age while a job runs, which the next pilot runs from its start.
cluster_runs_again() {  # NAME
    local age job deleter result=0
    age=$(cases has "clusters/$1" deleter)
    start_pilot "world-$1" 1 || return
    (while sleep 1; do delete_older "world-$1" "$age"; done) &
    deleter=$!
    # shellcheck disable=SC2064
    trap "kill $deleter" EXIT
    wait_until "$age" "the pod's age" is_older "$env_pilot" "$((age - 20))" || result=1
    job=$({ echo "+Pilot = \"$env_pilot\""; shell_job "$env_registry/demo/busybox:1" "sleep 25; exit 4"; echo queue; } | submit alice)
    wait_until 120 "the end of pod $env_pilot" pod_has_ended || result=1
    env_pilot=world-$1-next
    env_pilot_pod "$(env_wide 1) | $(env_setting ADDITIONAL_REQUIREMENTS "TARGET.Pilot =?= \\\"world-$1\\\"")" >"$GLIDEPOD_ENV/$env_pilot.json" &&
        env_start_pilot "$GLIDEPOD_ENV/$env_pilot.json" || result=1
    finished alice "$job" && equal "$(history_of "$job" ExitBySignal ExitCode NumJobStarts)" "0 false 4 2" || result=1
    equal "$(env_as alice grep -c "^012 " "$job.log")" 0 || result=1  # it was never on hold
    kill "$deleter"
    trap - EXIT
    end_pilot 2>/dev/null
    return $result
}
delete_older() {  # PREFIX SECONDS
    local pod
    for pod in $(env_kubectl get pods -o name 2>/dev/null | grep "^pod/$1"); do
        ! is_older "${pod#pod/}" "$2" || env_kubectl delete "$pod" --wait=false >/dev/null 2>&1
    done
}
is_older() {  # POD SECONDS
    env_kubectl get pod "$1" -o json 2>/dev/null | jq -e "(.metadata.ownerReferences | not) and (now - (.metadata.creationTimestamp | fromdate) > $2)" >/dev/null
}

# One container where it is to be seen what each next image costs.
containers_of() { if [[ -n $(cases has "clusters/$1" loaded)$(cases has "clusters/$1" manifest)$(cases has "clusters/$1" collected) ]]; then echo 1; else echo 2; fi; }  # NAME

# As `kind load`, `k3s ctr images import` and `minikube image load` do it: no registry has these names. Nor has one the
# content: from Kubernetes 1.35 on (KEP-2535) the kubelet asks the registry for a name whose content it has pulled by another.
load_image() {  # IMAGE NAME
    local file=$GLIDEPOD_ENV/loaded.tar
    rm -f "$file"
    containers_conf_of_cache skopeo copy --quiet "containers-storage:localhost/$1" "docker-archive:$file:$2" && label_image "$file" || return
    if [[ $env_kind == podhost ]]; then
        env_podman load --quiet --input "$file" >/dev/null
    else
        in_env ctr --address "$env_cluster/containerd.sock" --namespace k8s.io images import "$file" >/dev/null
    fi
}
label_image() {  # ARCHIVE
    local dir=$GLIDEPOD_ENV/labelled config
    rm -rf "$dir"
    mkdir "$dir" && tar -C "$dir" -xf "$1" || return
    config=$dir/$(jq -r '.[0].Config' "$dir/manifest.json")
    jq -c '.config.Labels.loaded = "yes"' "$config" >"$dir/new" && rm "$config" || return
    config=$(sha256sum "$dir/new" | cut -d' ' -f1).json
    mv "$dir/new" "$dir/$config" && jq -c --arg config "$config" '.[0].Config = $config' "$dir/manifest.json" >"$dir/new" &&
        mv "$dir/new" "$dir/manifest.json" && (cd "$dir" && tar -cf "$1" -- *) && rm -r "$dir"
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
        for image in $(cases has "clusters/$name" image) $(cases has "clusters/$name" hook | sed 's|^images/||'); do
            [[ " ${images[*]} " == *" $image "* ]] || with+=("$image")
        done
    done
    [[ " ${clusters[*]} " != *" rewritten-registry "* ]] || { env_push demo/busybox:1 "$env_registry/mirror/busybox:1" && env_push demo/busybox:2 "$env_registry/mirror/busybox:2"; } || return
    ((${#with[@]} == 0)) || in_env python3 -B "$world/images.py" "$env_registry" "$GLIDEPOD_ENV/programs" "${with[@]}" >/dev/null || return
    [[ $loaded == no ]] || load_images
}
# What an admission makes of the pod's images, for this shell.
have_webhook() {  # HOW
    case $1 in
        registry) start_admission 9443 registry "$env_registry/demo/" "$env_registry/mirror/" &&
            wait_until 90 "the webhook" admits "$env_registry/demo/busybox:1" "*/mirror/busybox:1" ;;
        *) start_admission 9443 "$1" "$env_registry" && wait_until 90 "the webhook" admits "$env_registry/demo/busybox:1" "*@sha256:*" ;;
    esac
}
# Images that are on the node come and go, as often as the kubelet's pause grows, and no job waits that pause out; one that
# is not there is no failure of the pilot's. ("never": nothing may be pulled.)
runs_loaded() {  # HOW
    local from=$env_pod_registry/loaded result=0 round
    for round in 1 2 3 4; do
        runs_in "$from/busybox:1" demo/busybox:1 || result=1
        runs_in "$from/busybox:2" demo/busybox:2 bob || result=1
    done
    longest_wait_below 9 || result=1
    if [[ $1 == never ]]; then
        image_is_refused "$env_pod_registry/loaded/not:1" "is not present with pull policy of Never" || result=1
    else
        image_is_refused "$from/gone:1" "$env_not_found" || result=1
    fi
    runs_in "$from/busybox:1" demo/busybox:1 || result=1
    equal "$(env_in_pool condor_status -constraint "K8SPodName == \"$env_pilot\" && DynamicSlot =!= True" -af GlidepodFailures)" 0 || result=1
    return $result
}

# The kubelet's pauses are 10 s, 20 s, 40 s.
longest_wait_below() {  # SECONDS
    local longest
    longest=$(env_pilot_log | sed -n 's/.*event=bound .* bind_ms=\([0-9]*\).*/\1/p' | sort -n | tail -n 1)
    echo "   the longest wait for a container: $longest ms; events: $(env_pilot_log | grep -o -E 'event=(name_again|by_id|not_by_id)' | sort | uniq -c | xargs)"
    ((longest < $1 * 1000 * GLIDEPOD_SLOWNESS))
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

# What an administrator has put there, for a namespace of the case's own: its rules are for all of the namespace's pods.
objects_of() { sed "s/NAMESPACE/$env_namespace/" "$world/clusters/$1/objects.yaml"; }  # NAME
apply_objects() {  # NAME
    [[ -e $world/clusters/$1/objects.yaml ]] || return 0
    env_begin_namespace "world-$1" && objects_of "$1" | env_kubectl apply -f - >/dev/null
}
# Some are the cluster's, and would stay without their namespace.
remove_objects() {  # NAME
    [[ -e $world/clusters/$1/objects.yaml ]] || return 0
    objects_of "$1" | env_kubectl delete --ignore-not-found --wait=false -f - >/dev/null 2>&1
    env_end_namespace
}

# What kubelets from 1.31 on say of their runtime.
node_has() {  # FEATURE
    env_kubectl get nodes -o json | jq -e --arg feature "$1" \
        '.items[0].status.runtimeHandlers // [] | any((.name // "") == "" and .features[$feature])' >/dev/null
}

cluster_case() {  # NAME
    local name=$1 expected key minor result
    expected=$(cases has "clusters/$name" "expect $where")
    [[ -n $expected ]] || expected=$(cases has "clusters/$name" expect)
    key=$(cases has "clusters/$name" containerd)
    if [[ -n $key && $(env_kubectl get nodes -o jsonpath='{.items[0].status.nodeInfo.containerRuntimeVersion}') != "containerd://$key"* ]]; then
        skip_test "containerd $key is wanted"
        return
    fi
    minor=$(cases has "clusters/$name" kubernetes)
    if [[ $env_kind == kubernetes && -n $minor ]] && (($(env_kubernetes_minor) < ${minor#1.})); then
        skip_test "Kubernetes $minor is wanted"
        return
    fi
    key=$(cases has "clusters/$name" feature)
    if [[ -n $key ]] && ! node_has "$key"; then
        skip_test "the node's runtime says nothing of $key"
        return
    fi
    apply_objects "$name" || return
    key=$(cases has "clusters/$name" webhook)
    [[ -z $key ]] || have_webhook "$key" || return
    case $expected in
        runs) cluster_runs "$name" ;;
        "runs again") cluster_runs_again "$name" ;;
        "told "*) cluster_tells "$name" "${expected#told }" ;;
        "refused "*) cluster_refuses "$name" "${expected#refused }" ;;
        "pilot ends "*) cluster_refuses "$name" "${expected#pilot ends }" ;;
        *) echo "   nothing looks for this end: $expected"; false ;;
    esac
    result=$?
    remove_objects "$name"
    return $result
}
for name in "${clusters[@]}"; do eval "test_$name() { cluster_case '$name'; }"; done
