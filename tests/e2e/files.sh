# shellcheck shell=bash
# Images that are files, for tests/e2e/native: image-store beside podhost, or in the cluster.

# app.sif, of alice and of bob; other.sif, encrypted.sif, none.sif and, on a kubelet, large.sif, of alice.
make_sif_files() {  # FOLDER
    local name root=$1/root names=(app:a other:another)
    debian_packages busybox-static squashfs-tools || return
    mkdir -p "$root"/{bin,etc,tmp,.singularity.d/env} && cp /bin/busybox "$root/bin/" && ln -s busybox "$root/bin/sh" && ln -s busybox "$root/bin/cat" || return
    echo 'export FROM_IMAGE="by its scripts"' >"$root/.singularity.d/env/90-environment.sh"
    [[ $env_kind == podhost ]] || names+=(large:a-large)
    for name in "${names[@]}"; do
        echo "made of ${name#*:} file" >"$root/etc/image-name"
        # Long enough to be converted that something happens meanwhile.
        [[ $name != large:* ]] || head -c 200M /dev/urandom >"$root/noise" || return
        mksquashfs "$root" "$1/squashfs" -noappend -quiet -no-progress -noD -noF >/dev/null &&
            python3 "$env_tree/tests/store/fake_sif.py" "$1/squashfs" "$1/${name%:*}.sif" || return
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

# --- beside podhost ------------------------------------------------------------------

start_image_store() {
    env_start image-store "$GLIDEPOD_ENV/bin/image-store" serve --socket "$GLIDEPOD_ENV/store/socket" --folder "$GLIDEPOD_ENV/image-store" &&
        wait_until 10 "image-store" grep -q event=ready "$GLIDEPOD_ENV/log/image-store.log"
}
image_store_log() {
    if [[ $env_kind == podhost ]]; then cat "$GLIDEPOD_ENV/log/image-store.log"; else store_kubectl logs deployment/glidepod-image-store; fi
}

# --- in the cluster ------------------------------------------------------------------

store_host=image-store.glidepod-system.svc
store_kubectl() { GOGC=off "$KUBECTL" --kubeconfig "$KUBECONFIG" --namespace glidepod-system "$@"; }
# manifests/store, with this environment's image and registry, and without what a small machine has not.
store_objects() {
    python3 -B "$env_tree/tests/lint/compose.py" "$env_manifests/store" |
        jq --arg image "$env_registry/glidepod/image-store:dev" --arg repository "$env_registry/glidepod/files" '
            (.items[] | select(.kind == "Deployment").spec.template.spec.containers[0]) |= (
                .image = $image | .resources |= {limits: {memory: .limits.memory}, requests: {memory: "0"}}
                | .args |= (map(if startswith("--repository=") then "--repository=" + $repository else . end) + ["--plain-http"]))'
}
start_cluster_store() {
    local pki=$GLIDEPOD_ENV/store-pki
    mkdir -p "$pki" && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=image-store \
        -addext "subjectAltName=DNS:$store_host" -keyout "$pki/tls.key" -out "$pki/tls.crt" 2>/dev/null || return
    store_kubectl apply -f "$env_manifests/provisioner/namespace.yaml" >/dev/null &&
        store_kubectl create secret tls glidepod-image-store-tls "--cert=$pki/tls.crt" "--key=$pki/tls.key" >/dev/null &&
        env_kubectl create configmap glidepod-image-store-ca "--from-file=ca.crt=$pki/tls.crt" >/dev/null &&
        store_objects | store_kubectl apply -f - >/dev/null &&
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
store_process() { env_processes_of "$(store_pod .metadata.uid)" image-store | head -n 1; }
# Kills it; the kubelet starts it again at once, and after a second time in ten seconds.
kill_store() { in_env kill -KILL "$(store_process)"; }
store_is_another() { local now; now=$(store_process) && [[ -n $now && $now != "$1" ]]; }  # PID
store_is_ready() { [[ $(store_pod '.status.containerStatuses[0].ready') == true ]]; }
store_kib() { in_env awk '/^VmHWM/ { print $2 }' "/proc/$(store_process)/status"; }  # the most memory that it had
left_by_store() { in_env sh -c 'find /proc/"$1"/root/var/lib/image-store/spool /proc/"$1"/root/var/lib/image-store/making -mindepth 1' sh "$(store_process)"; }
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
