# shellcheck shell=bash
# A pool outside of the cluster, and an operator's machine. Sourced by tests/e2e/join and tests/e2e/release.

domain=pool.my.site
as_named() { GOGC=off "$KUBECTL" --kubeconfig "$KUBECONFIG" "$@"; }  # objects name their namespaces
last_words() { :; }  # there is no one pilot
env_pilot_log() { :; }

in_machines() (containers_use "$GLIDEPOD_ENV/machines" "$env_cache/podman/storage" && "$@")
on() { in_machines podman exec --interactive "join-$1" "${@:2}"; }  # MACHINE COMMAND...
# Each with a link to the node, by which pods reach it, and nothing of our configuration.
make_machine() {  # NAME NUMBER DAEMONS
    local name=$1 pid node address=10.219.0.$((4 * $2 + 2)) gateway=10.219.0.$((4 * $2 + 1))
    # One that refuses at once.
    echo "nameserver 127.0.0.1" >"$GLIDEPOD_ENV/resolv.conf"
    mkdir -p "$GLIDEPOD_ENV/$name" && cat >"$GLIDEPOD_ENV/$name/00-pool.config" <<CONFIG || return
use security:recommended_v9_0
CONDOR_HOST = $manager_address
NETWORK_INTERFACE = $address
TRUST_DOMAIN = $domain
UID_DOMAIN = $domain
ALLOW_DAEMON = condor@$domain
ALLOW_READ = condor@$domain alice@$domain
ALLOW_WRITE = condor@$domain alice@$domain
SCHEDD_NAME = $name@$domain
DAEMON_LIST = MASTER $3
NEGOTIATOR_INTERVAL = 5
NEGOTIATOR_CYCLE_DELAY = 2
NEGOTIATOR_MIN_INTERVAL = 2
SCHEDD_INTERVAL = 5
MAX_FILE_DESCRIPTORS = 4096
COLLECTOR_MAX_FILE_DESCRIPTORS = 4096
SCHEDD_MAX_FILE_DESCRIPTORS = 4096
SHARED_PORT_MAX_FILE_DESCRIPTORS = 4096
CONFIG
    in_machines podman run --detach --quiet --pull never --name "join-$name" --hostname "$name" --network none \
        --volume "$GLIDEPOD_ENV/$name:/etc/condor/config.d" --volume "$GLIDEPOD_ENV/resolv.conf:/etc/resolv.conf" --entrypoint /bin/sleep \
        "localhost/$env_pool_image" infinity >/dev/null || return
    pid=$(in_machines podman inspect --format '{{.State.Pid}}' "join-$name") && read -r node _ <"$env_cluster/pid" || return
    nsenter --target "$node" --net ip link add "$name" type veth peer name eth0 netns "$pid" &&
        nsenter --target "$node" --net ip address add "$gateway/30" dev "$name" &&
        nsenter --target "$node" --net ip link set "$name" up &&
        nsenter --target "$pid" --net sh -c "ip address add $address/30 dev eth0 && ip link set eth0 up && ip route add default via $gateway"
}
make_pool() {
    local name
    manager_address=10.219.0.2
    make_machine manager 0 "COLLECTOR NEGOTIATOR" && make_machine access 1 SCHEDD || return
    # One key for both, as an administrator of a pool has it.
    on manager sh -c 'umask 077; mkdir -p /etc/condor/passwords.d; openssl rand -base64 48 | tr -d "\n" >/etc/condor/passwords.d/POOL' &&
        on manager cat /etc/condor/passwords.d/POOL </dev/null | on access sh -c 'umask 077; mkdir -p /etc/condor/passwords.d; cat >/etc/condor/passwords.d/POOL' || return
    for name in manager access; do
        on "$name" sh -c "umask 077; mkdir -p /etc/condor/tokens.d; condor_token_create -identity condor@$domain >/etc/condor/tokens.d/condor &&
            chmod 1777 /tmp && install -d -o condor -g condor \"\$(condor_config_val SPOOL)\" && exec condor_master" </dev/null || return
    done
    wait_until 60 "the pool" pool_is_up
}
pool_is_up() { on access condor_status -schedd -af Name </dev/null | grep access >/dev/null; }

# --- an operator's machine ---------------------------------------------------------

# kubectl of 1.20 knows neither components nor folders among resources; compose.py does, and tests/lint holds it to a
# newer kubectl. Images that are in no archive here are those of the tree.
make_tools() {  # KUBECONFIG
    mkdir -p "$tools" && cat >"$tools/kubectl" <<TOOL && cat >"$tools/skopeo" <<TOOL2 && chmod 0755 "$tools"/*
#!/bin/bash
k() { exec env GOGC=off "$KUBECTL" --kubeconfig "$1" "\$@"; }
compose() { python3 -B "$env_tree/tests/lint/compose.py" "\$1"; }
words=()
while ((\$#)); do
    case \$1 in
        kustomize) compose "\$2"; exit ;;
        -k) objects=\$(compose "\$2") || exit; shift 2 ;;
        *) words+=("\$1"); shift ;;
    esac
done
[[ -n \${objects-} ]] || k "\${words[@]}"
k "\${words[@]}" -f - <<<"\$objects"
TOOL
#!/bin/bash
words=()
for word; do
    case \$word in
        copy) words+=("\$word" --quiet --dest-tls-verify=false) ;;
        inspect) words+=("\$word" --tls-verify=false) ;;
        docker-archive:archives/*.tar)
            name=\${word##*/}
            [[ -e \${word#*:} ]] || word=containers-storage:localhost/glidepod/\${name%.tar}:dev
            words+=("\$word") ;;
        *) words+=("\$word") ;;
    esac
done
CONTAINERS_CONF=$env_cache/podman/etc/containers.conf CONTAINERS_STORAGE_CONF=$env_cache/podman/etc/storage.conf exec $(type -P skopeo) "\${words[@]}"
TOOL2
}

as_operator() { (cd "$machine" && PATH=$tools:$PATH "$@"); }
as_alice() { on access setpriv --reuid alice --regid alice --init-groups env -C /home/alice HOME=/home/alice USER=alice "$@"; }
flat() { tr -s ' \n' '  '; }
says() {  # WORDS COMMAND...
    local said
    said=$(as_operator "${@:2}" 2>&1 | flat)
    contains "$said" "$1"
}

# --- the steps of docs/join.md, which join.py put into $steps ------------------------

# What a reader puts for the page's names.
mine() { sed "s|registry\.my\.site/glidepod|$registry|g; s|cm\.my\.site|$manager_address|g; s|docker\.io/library/debian:12|$env_registry/demo/busybox:1|g; s/-wait 600/-wait 120/"; }
follow() {  # FILE
    local where commands
    where=$(head -n 1 "$1")
    commands=$(tail -n +2 "$1" | mine)
    case $where in
        "on your machine") (cd "$machine" && PATH=$tools:$PATH bash -euo pipefail -c "$commands") ;;
        "on the central manager") on manager bash -euo pipefail -c "cd /root; $commands" </dev/null ;;
        "on each access point") on access bash -euo pipefail -c "$commands" </dev/null ;;
        "as a user, on an access point") as_alice bash -euo pipefail -c "$commands" </dev/null ;;
        *) echo "   nobody knows where this is: $where"; return 1 ;;
    esac
}
says_right() {  # STEP
    local said word
    said=$(follow "$steps/$1/check" 2>&1 | flat)
    while IFS= read -r word; do
        word=$(mine <<<"$word" | flat)
        [[ $said == *"${word% }"* ]] || { printf '   it says:  %s\n   but not:  %s\n' "$said" "$word"; return 1; }
    done <"$steps/$1/right"
}
do_step() {  # STEP
    local file
    for file in "$steps/$1"/do-*; do
        [[ ! -e $file ]] || follow "$file" >"$GLIDEPOD_ENV/said" 2>&1 || { sed 's/^/   /' "$GLIDEPOD_ENV/said"; return 1; }
    done
}
insecure() { echo "${env_registry%:*}\\&colon;${env_registry##*:}"; }  # as envs_dict has it, for sed
labels_to_count() { sed -n 's/^labels_dict=//p' docs/operate.md; }
# The page's file, with the names of this cluster and the labels of docs/operate.md, in the tempo of a test.
write_site() {  # NUMBER
    mkdir -p "$machine/my-site"
    mine <"$steps/site-$1" | sed "s|^    site.conf=|&\n    [DEFAULT]\n    sleep_time=4\n    [k8s]\n    envs_dict=GLIDEPOD_INSECURE_REGISTRIES:$(insecure),STARTD_NOCLAIM_SHUTDOWN:60\n    labels_dict=$(labels_to_count)|" \
        >"$machine/my-site/kustomization.yaml"
}
send_tokens() {
    local file
    for file in token provisioner-token; do on manager cat "/root/tokens/$file" </dev/null >"$machine/$file" || return; done
}

# -----------------------------------------------------------------------------------

outside_up() {
    debian_packages python3 python3-yaml podman runc iproute2 || return
    env_init && env_start_registry || return
    [[ -n ${env_cluster:-} ]] || env_die "wants a cluster of tests/e2e/cluster/up" || return
    machine=$GLIDEPOD_ENV/operator tools=$GLIDEPOD_ENV/tools registry=$env_registry/join steps=$GLIDEPOD_ENV/steps
    mkdir -p "$machine" "$steps" && make_tools "$KUBECONFIG"
}
outside_down() {  # NAMESPACE...
    local code=$?
    trap - EXIT
    trap '' INT TERM
    [[ ! -d ${GLIDEPOD_ENV:-/nonexistent}/machines ]] || in_machines podman rm --force --time 0 join-manager join-access >/dev/null 2>&1
    if env_running && [[ ! -e $GLIDEPOD_ENV/own-cluster ]]; then
        as_named delete --ignore-not-found --timeout 120s namespace "$@" >/dev/null
    fi
    e2e_end
    env_down
    exit "$code"
}
