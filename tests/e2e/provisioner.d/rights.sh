# shellcheck shell=bash
# pilots reach nothing of pool and provisioner, the provisioner no secret
#
# Needs: nothing.
# Leaves: nothing.

may() { as_named auth can-i --quiet "$@" --as "system:serviceaccount:$who"; }
may_not() { ! may "$@"; }

# A pilot's token is what a hostile image would like to have.
test_rights() {
    local who=$env_namespace:glidepod-pilot what
    check "a pilot may patch pods of its namespace" may patch pods --namespace "$env_namespace"
    for what in "patch pods" "get pods" "create pods" "get secrets" "patch deployments" "create pods/exec"; do
        # shellcheck disable=SC2086  # verb and object
        check "  but not $what of pool and provisioner" may_not $what --namespace "$system"
    done
    check "  nor read secrets of its own namespace" may_not get secrets --namespace "$env_namespace"
    who=$system:glidepod-provisioner
    check "the provisioner may make pilots" may create pods --namespace "$env_namespace"
    for what in "create pods" "patch pods" "get secrets"; do
        # shellcheck disable=SC2086  # verb and object
        check "  but not $what where it runs" may_not $what --namespace "$system"
    done
    check "  nor read the pilots' secrets" may_not get secrets --namespace "$env_namespace"
}
