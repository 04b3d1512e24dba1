# shellcheck shell=bash
# what docs/operate.md removes, and that it is all
#
# Needs: nothing.
# Leaves: neither pool nor provisioner: no scene can come after it.

source "$e2e_source/operate.sh"

# What has not been installed here has lines of its own.
test_uninstall() {
    local lines
    lines=$(commands_of Uninstall | grep -v 'monitoring\|manifests/policy\|validatingadmission')
    check "what was installed is removed" works "$(sed '/grep glidepod/d' <<<"$lines")"
    check "and nothing else is left" equal "$(grep 'grep glidepod$' <<<"$lines" | grep -v persistentvolumes |
        while IFS= read -r line; do as_operator "$line"; done)" ""
    check "but the volumes, on purpose" contains "$(as_operator "kubectl get persistentvolumes")" "$system/data-access-point-0"
}
