# shellcheck shell=bash
# A pool on Kubernetes with what PRP's provisioner is written for: HTCondor's and Kubernetes' Python bindings, both of
# Debian, beside our provisioner, with the rights of one. Sourced after lib.sh by tests/bench/provision and tests/e2e/prp.

python_pool_image() {
    local dir
    dir=$(mktemp -d)
    cat >"$dir/Containerfile" <<'END'
FROM localhost/glidepod/pool:dev
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-kubernetes >/dev/null
END
    containers_conf_of_cache podman build --quiet --pull=never --isolation=chroot --network host \
        --layers --tag localhost/glidepod/bench:dev "$dir" >/dev/null 2>&1
    local code=$?
    rm -r "$dir"
    return $code
}

# The pod, in the namespace of the pilots, with these variables.
python_pool() {  # ENVIRONMENT: elements of a JSON list
    env_push glidepod/bench:dev "$env_registry/glidepod/bench:dev" || return
    env_kubectl apply -k "$env_manifests/base" >/dev/null || return
    sed 's/^  verbs: \[create, delete, list, watch, /&deletecollection, /; s/glidepod-system/glidepod/' \
        "$env_manifests/provisioner/access.yaml" | env_kubectl apply -f - >/dev/null || return
    env_kubectl create -f - >/dev/null <<END || return
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pool"},
 "spec": {"serviceAccountName": "glidepod-provisioner", "automountServiceAccountToken": true, "enableServiceLinks": true,
   "terminationGracePeriodSeconds": 1,
   "containers": [{"name": "pool", "image": "$env_registry/glidepod/bench:dev", "env": [$1]}]}}
END
    wait_until 120 "the pool" env_pool_ready || return
    local bin=${GLIDEPOD_BUILD:-$env_tree/build/dev}/bin library
    # With the one library that it needs of Debian 12, and that the pool has not.
    library=$(ldd "$bin/provisioner" | awk '$1 ~ /^libcpp-httplib[.]/ { print $3 }')
    tar --transform 's,.*/,,' --dereference -P -c "$bin/provisioner" "$library" | env_kubectl exec --stdin pool -- tar -C /usr/bin -x &&
        env_in_pool sh -c 'mv /usr/bin/libcpp-httplib.* /usr/lib/'
}
