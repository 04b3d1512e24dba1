# shellcheck shell=bash
# An operator with few rights. Sourced by tests/e2e/join and tests/e2e/overlays, whose as_named has all of them.

# Somebody with the ClusterRole admin in these namespaces, and nothing elsewhere: a service account's token, in a
# kubeconfig at $GLIDEPOD_ENV/somebody.
make_somebody() {  # NAMESPACE...
    local namespace token body='{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}'
    for namespace in "$@"; do
        as_named create namespace "$namespace" && as_named create rolebinding somebody --namespace "$namespace" \
            --clusterrole admin --serviceaccount "$1:somebody" || return
    done >/dev/null
    as_named create serviceaccount somebody --namespace "$1" >/dev/null || return
    token=$(as_named create --raw "/api/v1/namespaces/$1/serviceaccounts/somebody/token" -f - <<<"$body" | jq -r .status.token) &&
        as_named config view --raw -o json | jq --arg token "$token" '.users[0].user = {token: $token}' >"$GLIDEPOD_ENV/somebody"
}
# From now on all of that in the namespace of its account but this, as many a site has it for pods/exec.
deny_somebody() {  # NAMESPACE RESOURCE
    as_named get clusterrole admin -o json | jq --arg resource "$2" '
        {apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", metadata: {name: "most"},
         rules: [.rules[] | select(.resources) | .resources -= [$resource] | select(.resources != [])]}' |
        as_named create --namespace "$1" -f - && as_named delete rolebinding somebody --namespace "$1" &&
        as_named create rolebinding somebody --namespace "$1" --role most --serviceaccount "$1:somebody"
} >/dev/null
