# shellcheck shell=bash
# An admission webhook (admission.py) for the pods that are labelled for it. Sourced after lib.sh, on a cluster of the tests.

# Runs until end_admission, or until this shell ends.
start_admission() {  # PORT HOW [ARGUMENT...]
    local dir=$GLIDEPOD_ENV/admission-$1
    debian_packages python3 openssl && mkdir -p "$dir" || return
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=webhook -days 1 \
        -addext "subjectAltName=IP:$HOST_ADDRESS" -keyout "$dir/key" -out "$dir/certificate" 2>/dev/null || return
    python3 -B "$e2e_source/admission.py" "$HOST_ADDRESS" "$1" "$dir/certificate" "$dir/key" "${@:2}" &
    admission=$!
    trap end_admission EXIT
    trap 'exit 143' TERM
    env_kubectl create -f - >/dev/null <<END
{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
 "metadata": {"name": "images"},
 "webhooks": [{"name": "images.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
   "clientConfig": {"url": "https://$HOST_ADDRESS:$1/", "caBundle": "$(base64 -w 0 "$dir/certificate")"},
   "objectSelector": {"matchLabels": {"images": "admitted"}},
   "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}]}]}
END
}
end_admission() {
    [[ -n ${admission:-} ]] || return 0
    kill "$admission" 2>/dev/null
    admission=""
    env_kubectl delete mutatingwebhookconfiguration images >/dev/null 2>&1
}
# A pod's filter.
admitted='.metadata.labels.images = "admitted"'
# Both the program and the API server need a moment before it counts.
admits() {  # IMAGE PATTERN
    # shellcheck disable=SC2053
    [[ $(env_kubectl run asked --image "$1" --labels images=admitted --dry-run=server -o jsonpath='{.spec.containers[0].image}') == $2 ]]
}
