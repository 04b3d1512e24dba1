# shellcheck shell=bash
# Images that are files, for tests/e2e/native: image-store beside podhost, or in the cluster.

# app.sif, of alice and of bob; encrypted.sif and none.sif, and for troubles large.sif, swells.sif and away.sif, of alice.
make_sif_files() {  # FOLDER
    local name root=$1/root
    debian_packages busybox-static squashfs-tools || return
    mkdir -p "$root"/{bin,etc,tmp,.singularity.d/env} && cp /bin/busybox "$root/bin/" && ln -s busybox "$root/bin/sh" && ln -s busybox "$root/bin/cat" || return
    echo 'export FROM_IMAGE="by its scripts"' >"$root/.singularity.d/env/90-environment.sh"
    for name in app large swells away; do
        echo "made of $name file" >"$root/etc/image-name"
        rm -rf "$root/noise" && mkdir "$root/noise" || return
        case $name in
            # Long enough to be converted that something happens meanwhile.
            large) head -c 200M /dev/urandom >"$root/noise/0" ;;
            # A squashfs has what is the same once; a layer has it twenty times.
            swells) head -c 4M /dev/urandom >"$root/noise/0" && for n in {1..20}; do cp "$root/noise/0" "$root/noise/$n"; done ;;
        esac || return
        mksquashfs "$root" "$1/squashfs" -noappend -quiet -no-progress -noD -noF >/dev/null &&
            python3 "$env_tree/tests/store/fake_sif.py" "$1/squashfs" "$1/$name.sif" || return
    done
    rm -rf "$1/squashfs" "$root"
    cp "$env_tree/tests/fuzz/corpus/store/encrypted" "$1/encrypted.sif"
    echo "no image" >"$1/none.sif"
    (cd "$1" && tar -c ./*.sif) | env_as alice tar -x && tar -C "$1" -c ./app.sif | env_as bob tar -x
}
file_job() { printf 'container_image = %s\nrequest_disk = 1GB\n' "$1"; shell_lines "$2"; echo queue; }  # FILE SCRIPT
file_ran() {  # USER JOB CODE OUTPUT
    finished "$1" "$2" 180 || { env_job "$2.0" JobStatus HoldReason; return 1; }
    equal "$(history_of "$2" ExitCode)" "0 $3" && equal "$(output_of "$1" "$2")" "$4"
}
started_in_vain() { [[ $(env_job "$1" JobStatus NumShadowStarts) =~ ^1,\ [1-9] ]]; }
never_held() { equal "$(history_of "$1" NumHolds LastHoldReason)" "0 undefined undefined"; }  # JOB

# A store whose folder is small, which nothing else writes to, and the test's own pilot, which knows it.
store_room=700m
start_pilot_with_store() {  # NAME CONTAINERS
    store_folder=$GLIDEPOD_ENV/image-store
    mkdir -p "$store_folder" && in_env mount -t tmpfs -o "size=$store_room,mode=0777" tmpfs "$store_folder" || return
    if [[ $env_kind == podhost ]]; then
        start_image_store && start_pilot "$1" "$2" "$(env_image_store)"
    else
        start_cluster_store --free-mib=0 "{\"hostPath\": {\"path\": \"$store_folder\"}}" && start_pilot "$1" "$2" "$(pilot_with_store)"
    fi
}
end_store() { if [[ $env_kind == podhost ]]; then env_stop image-store; else end_cluster_store; fi; }
set_room() { in_env mount -o "remount,size=$1" "$store_folder"; }  # SIZE
left_by_store() { in_env find "$store_folder/spool" "$store_folder/making" -mindepth 1; }
store_has_said() { image_store_log | grep -e "$1" >/dev/null; }  # WORDS
store_repository() { if [[ $env_kind == podhost ]]; then echo localhost/glidepod-files; else echo "$env_registry/glidepod/files"; fi; }
kill_store() { in_env kill -KILL "$(store_process)"; }
store_is_another() { local now; now=$(store_process) && [[ -n $now && $now != "$1" ]]; }  # PID
store_kib() { in_env awk '/^VmHWM/ { print $2 }' "/proc/$(store_process)/status"; }  # the most memory that it had

# --- troubles ------------------------------------------------------------------------

# Killed while it reads a file. On a kubelet once more, after which it is away for ten seconds: the agent asks again, and no
# start is in vain. Beside podhost nothing starts it again by itself, and the job starts again.
store_ends_meanwhile() {
    local job before result=0
    job=$(file_job large.sif 'cat /etc/image-name; exit 7' | submit_here alice)
    wait_until 60 "the large file's layer" eval '[[ -n $(left_by_store) ]]' || return
    before=$(store_process)
    kill_store || return
    if [[ $env_kind == podhost ]]; then
        [[ -n $(left_by_store) ]] || { echo "   it had nothing half done"; result=1; }
        start_image_store || return
    else
        wait_until 60 "the next store" store_is_another "$before" && kill_store || return
    fi
    file_ran alice "$job" 7 "made of large file" || result=1
    never_held "$job" || result=1
    [[ $env_kind == podhost ]] || equal "$(history_of "$job" NumShadowStarts)" "0 1" || result=1
    equal "$(left_by_store)" "" || result=1
    return $result
}
# Its disk ends in the middle of a layer, then is full from the start, and then has room.
store_is_full() {
    local job result=0
    set_room 40m || return
    job=$(file_job swells.sif 'cat /etc/image-name; exit 8' | submit_here alice)
    wait_until 60 "a layer that does not fit" store_has_said "event=no_image .*No space left on device" || result=1
    wait_until 60 "nothing half done" set_room 64k || { in_env df "$store_folder"; result=1; }
    wait_until 120 "a start in vain" started_in_vain "$job.0" || result=1
    wait_until 120 "a file that does not fit" store_has_said "event=no_image .*no room for a file" || result=1
    equal "$(left_by_store)" "" || result=1
    set_room "$store_room" || result=1
    file_ran alice "$job" 8 "made of swells file" || result=1
    never_held "$job" || result=1
    return $result
}
# Out of reach for longer than the agent asks again: its link is down, or, beside podhost, it does not run.
store_is_away() {
    local job link result=0
    if [[ $env_kind == podhost ]]; then
        env_stop image-store || return
    else
        link=$(store_link) && in_env ip link set "$link" down || return
    fi
    job=$(file_job away.sif 'cat /etc/image-name; exit 6' | submit_here alice)
    wait_until 180 "a start in vain" started_in_vain "$job.0" || result=1
    if [[ $env_kind == podhost ]]; then start_image_store; else in_env ip link set "$link" up; fi || result=1
    file_ran alice "$job" 6 "made of away file" || result=1
    never_held "$job" || result=1
    return $result
}
store_is_small() {
    echo "   the store has had $(store_kib) KiB"
    (($(store_kib) < 65536))
}

# --- beside podhost ------------------------------------------------------------------

start_image_store() { env_start_image_store --free-mib 0; }
image_store_log() {
    if [[ $env_kind == podhost ]]; then cat "$GLIDEPOD_ENV/log/image-store.log"; else store_kubectl logs deployment/glidepod-image-store; fi
}
store_process() {
    if [[ $env_kind == podhost ]]; then cat "$GLIDEPOD_ENV/log/image-store.pid"; else env_processes_of "$(store_pod .metadata.uid)" image-store | head -n 1; fi
}

# --- in the cluster ------------------------------------------------------------------

store_host=image-store.glidepod-system.svc
store_kubectl() { GOGC=off "$KUBECTL" --kubeconfig "$KUBECONFIG" --namespace glidepod-system "$@"; }
# manifests/store, with this environment's image and registry, and without what a small machine has not.
store_objects() {  # [ARGUMENT VOLUME]: one more argument, and another work volume
    local volume=${2:-null}
    python3 -B "$env_tree/tests/lint/compose.py" "$env_manifests/store" |
        jq --arg image "$env_registry/glidepod/image-store:dev" --arg repository "$env_registry/glidepod/files" --arg more "${1:-}" --argjson volume "$volume" '
            (.items[] | select(.kind == "Deployment").spec.template.spec) |= (
                (.containers[0] |= (
                    .image = $image | .resources |= {limits: {memory: .limits.memory}, requests: {memory: "0"}}
                    | .args |= (map(if startswith("--repository=") then "--repository=" + $repository else . end) + ["--plain-http"]
                        + (if $more == "" then [] else [$more] end))))
                | (.volumes[] | select($volume != null and .name == "work")) |= {name} + $volume)'
}
start_cluster_store() {  # [ARGUMENT VOLUME]
    local pki=$GLIDEPOD_ENV/store-pki
    mkdir -p "$pki" && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=image-store \
        -addext "subjectAltName=DNS:$store_host" -keyout "$pki/tls.key" -out "$pki/tls.crt" 2>/dev/null || return
    store_kubectl apply -f "$env_manifests/provisioner/namespace.yaml" >/dev/null &&
        store_kubectl create secret tls glidepod-image-store-tls "--cert=$pki/tls.crt" "--key=$pki/tls.key" >/dev/null &&
        env_kubectl create configmap glidepod-image-store-ca "--from-file=ca.crt=$pki/tls.crt" >/dev/null &&
        store_objects "$@" | store_kubectl apply -f - >/dev/null &&
        store_kubectl rollout status deployment glidepod-image-store --timeout 120s >/dev/null && return
    store_kubectl describe pods >&2
    image_store_log >&2
    end_cluster_store
    return 1
}
end_cluster_store() {
    store_objects | store_kubectl delete --wait=false -f - >/dev/null 2>&1
    store_kubectl delete secret glidepod-image-store-tls >/dev/null
    env_kubectl delete configmap glidepod-image-store-ca >/dev/null
}
store_pod() { store_kubectl get pods -l app.kubernetes.io/name=glidepod-image-store -o "jsonpath={.items[0]$1}"; }  # FIELD
# The node's end of its pod's link.
store_link() {
    local number
    number=$(in_env cat "/proc/$(store_process)/root/sys/class/net/eth0/iflink") &&
        in_env ip -oneline link | sed -n "s/^$number: \([^@:]*\).*/\1/p" | grep .
}
# Nobody has made a pod for this job: the provisioner does, and its pilot knows the store by the settings alone.
provisioner_knows_store() {
    local job settings=$GLIDEPOD_ENV/files.conf template=$GLIDEPOD_ENV/files-template.json result=0
    sed "s|central-manager.glidepod-system|$env_pool_address|; s|registry.example.org|$env_registry|; s/^sleep_time=.*/sleep_time=5/; s/^app_name=.*/app_name=files/" \
        "$env_manifests/provisioner/provisioner.conf" >"$settings" &&
        cat >>"$settings" <<END && jq --arg host "$store_host" --arg ip "$(store_pod .status.podIP)" '.spec.hostAliases = [{ip: $ip, hostnames: [$host]}]' \
            "$env_manifests/provisioner/pilot-pod.json" >"$template" && env_start_provisioner "$settings" "$template" || return
[htcondor]
additional_requirements=(OfProvisioner =?= true)
[k8s]
image_store=https://$store_host:8443
image_store_repository=$(store_repository)
END
    job=$({ printf '+OfProvisioner = true\nrequirements = TARGET.K8SProvisionerName == "files"\n'; file_job app.sif 'cat /etc/image-name; ls /var/run/secrets 2>/dev/null; exit 9'; } | submit alice)
    file_ran alice "$job" 9 "made of app file" || { env_kubectl logs provisioner | tail -n 20; result=1; }
    env_end_provisioner
    env_kubectl delete pods -l k8s-app=files --wait=false >/dev/null
    return $result
}
# The pilot's way to it, as docs/image-store.md has it; there is no cluster DNS.
pilot_with_store() {
    local folder=/var/run/secrets/glidepod.io/image-store
    cat <<END
$(env_setting GLIDEPOD_IMAGE_STORE "https://$store_host:8443") | $(env_setting GLIDEPOD_IMAGE_STORE_REPOSITORY "$env_registry/glidepod/files")
| $(env_setting GLIDEPOD_IMAGE_STORE_CA $folder/ca.crt)
| .spec.hostAliases = [{ip: "$(store_pod .status.podIP)", hostnames: ["$store_host"]}]
| .spec.volumes += [{name: "image-store", projected: {defaultMode: 256, sources: [
    {serviceAccountToken: {path: "token", audience: "image-store", expirationSeconds: 3600}}, {configMap: {name: "glidepod-image-store-ca"}}]}}]
| .spec.containers[0].volumeMounts += [{name: "image-store", mountPath: "$folder", readOnly: true}]
END
}
