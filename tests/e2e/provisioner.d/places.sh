# shellcheck shell=bash
# two namespaces as two places, each with its own account and quota: shares,
# overflow, and one of them lost
#
# Needs: no pods, no jobs.
# Leaves: a second namespace, which is going.

other_namespace=glidepod-west
remove_places() { as_named delete --ignore-not-found --wait=false namespace "$other_namespace" >/dev/null 2>&1; }
at_end remove_places

in_place() {  # east|west ARGUMENT...
    local name_space=$env_namespace
    [[ $1 == east ]] || name_space=$other_namespace
    shift
    as_named --namespace "$name_space" "$@"
}

# An account that may make pods in its place, and nothing elsewhere. Its token lasts until its secret is deleted.
make_token() {  # PLACE
    in_place "$1" apply -f - >/dev/null <<END || return
apiVersion: v1
kind: Secret
metadata: {name: places-token, annotations: {kubernetes.io/service-account.name: places}}
type: kubernetes.io/service-account-token
END
    wait_until 20 "a token" eval '[[ -n $(in_place '"$1"' get secret places-token -o jsonpath="{.data.token}") ]]' || return
    in_place "$1" get secret places-token -o jsonpath='{.data.token}' | base64 -d >"$GLIDEPOD_ENV/site/$1.token"
}

make_place() {  # PLACE
    in_place "$1" create serviceaccount places >/dev/null &&
        in_place "$1" create role places --verb create,delete,list,watch,patch --resource pods >/dev/null &&
        in_place "$1" create role places-quota --verb list --resource resourcequotas >/dev/null || return
    local role name_space=$env_namespace
    [[ $1 == east ]] || name_space=$other_namespace
    for role in places places-quota; do
        in_place "$1" create rolebinding "$role" --role "$role" --serviceaccount "$name_space:places" >/dev/null || return
    done
    make_token "$1"
}

make_places() {
    env_make_namespace "$other_namespace" && make_place east && make_place west || return
    # A secret would have to be mounted, by provisioners begun anew. The test's tokens may stand here.
    sed -i 's/files: \[provisioner.conf\]/files: [provisioner.conf, east.token, west.token]/' "$GLIDEPOD_ENV/site/kustomization.yaml"
}

configure_places() {  # MAX_PODS
    settings "[k8s:east]" "namespace=$env_namespace" "weight=3" "max_pods_per_cluster=10" \
        "token_file=/etc/provisioner/east.token" "[k8s:west]" "namespace=$other_namespace" "max_pods_per_cluster=10" \
        "token_file=/etc/provisioner/west.token" "[glidepod]" "max_pods=$1" |
        sed 's/^unschedulable_limit=.*/unschedulable_limit=600/; s/^take_back_after=.*/take_back_after=600/
            s/^max_pods_per_cluster=2$//' >"$GLIDEPOD_ENV/site/provisioner.conf"
    as_named apply -k "$GLIDEPOD_ENV/site" >/dev/null
}

pods_in() { in_place "$1" get pods -l k8s-app=glidepod "${@:2}"; }  # PLACE [ARGUMENT...]
pods_are() { [[ $(pods_in east -o name | wc -l) == "$1" && $(pods_in west -o name | wc -l) == "$2" ]]; }  # EAST WEST

# Each pod with its uid, and whether somebody has asked for its end.
all_pods() {
    local place
    for place in east west; do
        pods_in "$place" -o jsonpath='{range .items[*]}{.metadata.uid}{" "}{.metadata.deletionTimestamp}{"\n"}{end}'
    done | sort
}

test_places() {
    local used before
    used=$(read_count used)
    check "a second namespace, and an account for each" make_places || return
    configure_places 4
    check "they are two places now" wait_until 120 "that" settings_were used $((used + 1))
    clusters=()
    submit_shape alice busybox:1 1 100MB 40 'sleep 300'
    check "pods are shared by weight" wait_until 30 "that" pods_are 3 1
    in_place west create quota places --hard pods=1 >/dev/null
    configure_places 8
    check "there may be more of them" wait_until 120 "that" settings_were used $((used + 2))
    check "what a quota leaves no room for goes to the other" wait_until 30 "that" pods_are 7 1
    check "  which the log tells" leader_says "west: quota; pods: 4 in east"
    check "  with the place in the pods' names" wait_until 20 "that" status_says "^west/glidepod-"
    check "  and so do metrics" equal "$(metric 'place_seen{place="west"}')" 1
    before=$(all_pods)
    in_place west delete secret places-token >/dev/null
    check "one whose token is revoked is lost" wait_until 60 "that" metric_is 'place_seen{place="west"}' 0
    check "  and the log says why" leader_says "event=place_lost place=west why="
    sleep 10
    check "  and nothing is made or asked to go" equal "$(all_pods)" "$before"
    check "  the other is seen" eval 'metric_is blind 0 && metric_is "place_seen{place=\"east\"}" 1'
    make_token west && as_named apply -k "$GLIDEPOD_ENV/site" >/dev/null
    check "with another token it is back" wait_until 90 "that" eval 'nudge; metric_is "place_seen{place=\"west\"}" 1'
    sleep 5
    check "  and nothing is more or less than before" equal "$(all_pods)" "$before"
    env_in_pool condor_rm -all >/dev/null
    in_place west delete --wait=false pods -l k8s-app=glidepod >/dev/null
    in_place east delete serviceaccount/places secret/places-token role/places role/places-quota \
        rolebinding/places rolebinding/places-quota >/dev/null
    as_named delete --wait=false namespace "$other_namespace" >/dev/null
    write_site
    usual_settings
    check "pods end" wait_until 180 "the end of the pods" no_pilots
}
