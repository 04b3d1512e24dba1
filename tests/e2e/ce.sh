# shellcheck shell=bash
# The compute entrypoint of tests/e2e/ce without Kubernetes: manifests/ce's two containers and a remote access point,
# beside the pool and the pilot of the environment.

ce_address=10.88.0.4
remote_address=10.88.0.5
ce_files=""  # its volumes, secrets and configuration

# The two containers of manifests/ce, with its settings and mounts.
ce_container() {  # NAME OPTION...
    env_podman run --detach --quiet --pull never --name "$1" --env "GLIDEPOD_USERS=physics:2001 biology:2002" \
        --volume "$ce_files/routed:/var/spool/condor" --volume "$ce_files/ce:/var/spool/ce" \
        --volume "$ce_files/tmp:/tmp" "${@:2}" "localhost/$env_pool_image" >/dev/null
}
ce_start() {
    rm -rf "$ce_files/tmp" && mkdir -m 0777 "$ce_files/tmp" || return
    ce_container routed --hostname ce-0 --ip "$ce_address" --env GLIDEPOD_POOL_ROLES=access-point \
        --env "CONDOR_HOST=$env_pool_address" --env _CONDOR_SCHEDD_NAME=routed@ce \
        --env '_CONDOR_QUEUE_SUPER_USER_MAY_IMPERSONATE=.*' --env _CONDOR_ALIVE_INTERVAL=20 \
        --volume "$ce_files/pool-key:/etc/condor/passwords.d" || return
    ce_container ce --network container:routed --env GLIDEPOD_POOL_ROLES=ce --env "GLIDEPOD_CE_HOST=$ce_address" \
        --env "GLIDEPOD_POOL=$env_pool_address" --env _CONDOR_SEC_DEFAULT_SESSION_DURATION=20 \
        --volume "$ce_files/ce-key:/etc/condor/passwords.d" --volume "$ce_files/pool-token:/etc/condor/tokens.d/pool:ro" \
        --volume "$ce_files/ce.config:/etc/condor/config.d/70-ce.config:ro" \
        --volume "$ce_files/routes.config:/etc/condor/config.d/75-routes.config:ro"
}
# Their pod is killed; a new one begins with the same volume and nothing else.
ce_restart() {
    env_podman rm --force --time 0 ce >/dev/null && env_podman rm --force --time 0 routed >/dev/null && ce_start
}

ce_up() {
    ce_files=$GLIDEPOD_ENV/ce
    mkdir -p "$ce_files"/{routed,ce,pool-key,ce-key} || return
    env_in_pool cat /etc/condor/passwords.d/POOL >"$ce_files/pool-key/POOL" || return
    openssl rand -base64 48 | tr -d '\n' >"$ce_files/ce-key/POOL"
    cp "$GLIDEPOD_ENV/tokens/provisioner/provisioner" "$ce_files/pool-token"
    chmod 0600 "$ce_files"/{pool-key/POOL,ce-key/POOL,pool-token}
    ce_config >"$ce_files/ce.config" && ce_routes >"$ce_files/routes.config" && ce_start || return
    env_podman run --detach --quiet --pull never --name remote --hostname remote --ip "$remote_address" \
        --env GLIDEPOD_TRUST_DOMAIN=remote --env _CONDOR_GRIDMANAGER_JOB_PROBE_INTERVAL=5 \
        --env _CONDOR_GRIDMANAGER_RESOURCE_PROBE_INTERVAL=10 --env _CONDOR_SCHEDD_NAME=remote@ap "localhost/$env_pool_image" >/dev/null
}

in_ce() { env_podman exec ce "$@" </dev/null; }
in_routed() { env_podman exec routed "$@" </dev/null; }
in_remote() { env_podman exec remote "$@" </dev/null; }
as_remote() { env_podman exec --interactive --user alice --workdir /home/alice --env HOME=/home/alice --env USER=alice remote "$@"; }
