# shellcheck shell=bash
# kubectl as it is, against the TCP port.

kubectl=$(source "$e2e_source/cluster/programs.sh" && echo "$k8s_dir/kubectl")
kubectl() { in_env env HOME="$GLIDEPOD_ENV" timeout 30 "$kubectl" --server "http://127.0.0.1:$port/t/$(token)" "$@" 2>&1; }
if ! "$e2e_source/cluster/build" --kubectl; then
    for name in create get patch logs delete kubeconfig; do check "kubectl $name" skip_test "$kubectl cannot be had"; done
else
    pod k '.spec.containers[0].command = sh("echo from kubectl; sleep 1000")' >"$GLIDEPOD_ENV/k.json"
    check "kubectl create" equal "$(kubectl create -f "$GLIDEPOD_ENV/k.json")" "pod/k created"
    check "kubectl create again" contains "$(kubectl create -f "$GLIDEPOD_ENV/k.json")" 'Error from server (AlreadyExists)'
    check "kubectl wait" equal "$(kubectl wait --for=condition=Ready pod/k --timeout=15s)" "pod/k condition met"
    check "kubectl get" equal "$(kubectl get pod k -o jsonpath='{.status.phase}')" Running
    check "kubectl get -l" equal "$(kubectl get pods -l app=test -o name)" pod/k
    check "kubectl get of none" equal "$(kubectl get pod nope)" 'Error from server (NotFound): pods "nope" not found'
    check "kubectl patch" equal "$(kubectl patch pod k -p '{"spec": {"containers": [{"name": "main", "image": "localhost/demo/busybox:2"}]}}')" "pod/k patched"
    check "kubectl patch --type json" equal "$(kubectl patch pod k --type json -p '[{"op": "add", "path": "/metadata/labels/x", "value": "y"}]')" "pod/k patched"
    check "kubectl set image" contains "$(kubectl set image pod/k main=localhost/demo/busybox:1)" "image updated"
    check "kubectl label" contains "$(kubectl label pod k z=1)" labeled
    check "kubectl patch of a command" contains "$(kubectl patch pod k -p '{"spec": {"containers": [{"name": "main", "command": ["true"]}]}}')" "spec: Forbidden: pod updates may not change fields"
    wait_until 10 "its log" log_has k "from kubectl"
    check "kubectl logs" equal "$(kubectl logs k)" "from kubectl"
    check "kubectl delete, which waits" equal "$(kubectl delete pod k)" 'pod "k" deleted'
    check "  until it is gone" gone k
    check "the kubeconfig" equal "$(in_env env HOME="$GLIDEPOD_ENV" "$kubectl" --kubeconfig "$GLIDEPOD_ENV/podhost/kubeconfig" get pods 2>&1)" "No resources found in default namespace."
fi
