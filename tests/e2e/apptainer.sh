# shellcheck shell=bash
# The real apptainer as a peer: Debian sid's, on a bare machine of the pool. Sourced after lib.sh, whose environment it uses.

# It and what it needs of Debian sid, unpacked beside the system; kept in the cache.
apptainer_fetch() {  # DIR
    [[ ! -e $1/usr/bin/mksquashfs ]] || return 0
    env_say "fetching apptainer from Debian sid"
    (
        set -e
        source "$e2e_source/cluster/lib.sh"
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
        private_apt "$work/apt" deb sid
        private_apt+=(-o Dir::State::status=/dev/null)
        apt-get -q "${private_apt[@]}" update
        cd "$work"
        # squashfs-tools: for images that it pulls by itself.
        apt-get -q "${private_apt[@]}" download apptainer libseccomp2 libsqlite3-0 squashfs-tools liblzo2-2
        for package in ./*.deb; do dpkg-deb --extract "$package" root; done
        rm -rf "$1" && mv root "$1"
    ) >"$GLIDEPOD_ENV/log/apptainer" 2>&1
    [[ -x $1/usr/bin/apptainer ]] || { tail "$GLIDEPOD_ENV/log/apptainer" >&2; return 1; }
}

# Debian and HTCondor as in the pilot, with that apptainer; the folder may have more, and config.d/99-bare.config.
apptainer_build() {  # DIR IMAGE [LINE_OF_CONTAINERFILE...]
    apptainer_fetch "$env_cache/apptainer" && cp -a "$env_cache/apptainer" "$1/apptainer" &&
        cp "$env_tree"/images/pilot/config.d/{10-pool,20-security,90-logs}.config "$1/config.d/" || return
    printf '%s\n' "FROM localhost/glidepod/base:dev" "COPY apptainer/usr/ /usr/" "COPY apptainer/etc/ /etc/" "COPY apptainer/var/ /var/" \
        "${@:3}" "COPY config.d/ /etc/condor/config.d/" 'ENTRYPOINT ["condor_master", "-f"]' >"$1/Containerfile"
    containers_conf_of_cache podman build --quiet --pull=never --isolation=chroot --layers --tag "localhost/$2" "$1" >/dev/null &&
        rm -rf "$1"
}

# The machine `bare`, until its slot is in the pool.
apptainer_start() {  # IMAGE
    if [[ $env_kind == podhost ]]; then
        env_podman run --detach --quiet --pull never --name bare --privileged --env "CONDOR_HOST=$env_pool_address" \
            --volume "$GLIDEPOD_ENV/tokens/pilot:/etc/condor/tokens.d:ro" "localhost/$1" >/dev/null || return
    else
        env_push "$1" "$env_registry/$1" &&
            env_kubectl label --overwrite namespace "$env_namespace" pod-security.kubernetes.io/enforce=privileged >/dev/null &&
            env_kubectl create -f - >/dev/null <<END_OF_POD || return
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"},
 "spec": {"automountServiceAccountToken": false, "enableServiceLinks": false, "terminationGracePeriodSeconds": 1,
   "containers": [{"name": "bare", "image": "$env_registry/$1", "securityContext": {"privileged": true},
     "env": [{"name": "CONDOR_HOST", "value": "$env_pool_address"}],
     "volumeMounts": [{"name": "token", "mountPath": "/etc/condor/tokens.d", "readOnly": true}]}],
   "volumes": [{"name": "token", "secret": {"secretName": "glidepod-pool-token", "defaultMode": 256}}]}}
END_OF_POD
    fi
    env_pilot=bare
    wait_until 90 "the bare machine's slot" env_pilot_ready
}
