# shellcheck shell=bash
# Who may do what: the sockets' modes, the token on TCP, and the API a pod has for itself.

state=$GLIDEPOD_ENV/podhost
check "the admin's socket is root's only" equal "$(stat -c '%a %u %g %F' "$GLIDEPOD_ENV/podhost.sock")" "600 0 0 socket"
check "podman's socket is root's only" equal "$(stat -c '%a %u %F' "$state/podman.sock")" "600 0 socket"
check "token and kubeconfig are root's only" equal "$(stat -c %a "$state/token" "$state/kubeconfig" | paste -sd' ')" "600 600"
as_nobody() { in_env setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
chmod 711 "$GLIDEPOD_ENV"  # so that only podhost's own modes stand in the way
check "another user cannot connect" equal "$(as_nobody curl -sS --unix-socket "$GLIDEPOD_ENV/podhost.sock" http://x/version 2>&1 | grep -c -i -e denied -e "couldn't connect")" 1
check "another user cannot list the state" contains "$(as_nobody ls "$state" 2>&1)" "Permission denied"

tcp() { in_env curl -sS --max-time 5 -o /dev/null -w '%{http_code}' "$@"; }
url=http://127.0.0.1:$port
check "TCP without a token: 401" equal "$(tcp "$url/version")" 401
check "  a Status" equal "$(in_env curl -sS "$url/api/v1/pods" | jq -r '"\(.kind) \(.reason)"')" "Status Unauthorized"
check "  before a body is read" contains "$(raw 2 "POST $pods HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n" | head -n 1)" "401"
check "a wrong token" equal "$(tcp -H 'Authorization: Bearer wrong' "$url/version")" 401
check "a token that begins right" equal "$(tcp -H "Authorization: Bearer $(token | head -c 20)" "$url/version")" 401
check "an empty token" equal "$(tcp -H 'Authorization: Bearer ' "$url/version") $(tcp "$url/t//version")" "401 401"
check "the token as a header" equal "$(tcp -H "Authorization: Bearer $(token)" "$url/version")" 200
check "the token in the path" equal "$(tcp "$url/t/$(token)/version")" 200
check "only on the loopback" equal "$(in_env sh -c "cat /proc/net/tcp" | awk '$4 == "0A" && $2 ~ /:192B$/ {print $2}')" "0100007F:192B"
check "no token in the log" equal "$(grep -c "$(token)" "$GLIDEPOD_ENV/log/podhost.log")" 0

create me '.metadata.labels = {a: "b"} | .spec.containers += [container("payload"; "sleep 1000"), container("other"; "sleep 1000")]
    | .spec.volumes = [{name: "api", projected: {sources: [{serviceAccountToken: {path: "token"}}, {downwardAPI: {items: [{path: "namespace", fieldRef: {fieldPath: "metadata.namespace"}}]}}]}}]
    | .spec.containers[0].volumeMounts = [{name: "api", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}]'
create neighbour
runs me && runs neighbour
uid=$(of_pod me .metadata.uid)
check "the pod's own socket, in the first container" equal "$(in_pod me main sh -c 'cd /var/run/secrets/kubernetes.io/serviceaccount; stat -c "%a %u %F" api.sock; cat namespace')" $'600 0 socket\ndefault'
check "  and in no other" equal "$(in_pod me payload sh -c 'find / -xdev -name api.sock; find / -name podhost.sock -o -name podman.sock' 2>/dev/null)" ""
socket=$state/pods/$uid/volumes/api/api.sock
denied='is forbidden: User "system:serviceaccount:default:default" cannot'
call GET "$pods/me"
check "may get itself" equal "$code $(field .metadata.uid)" "200 $uid"
call GET "$pods?fieldSelector=metadata.name%3Dme"
check "may list itself" equal "$code $(field '.items | length')" "200 1"
call GET "$pods?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dme"
check "may watch itself" equal "$code $(field .object.metadata.name | head -1)" "200 me"
call GET "$pods/neighbour"
check "may not get its neighbour" is_status 403 Forbidden "pods \"neighbour\" $denied get"
call GET "$pods"
check "may not list all" is_status 403 Forbidden "$denied list"
call GET "/api/v1/pods?fieldSelector=metadata.name%3Dme"
check "may not list all namespaces" is_status 403 Forbidden "$denied list"
call GET "/api/v1/namespaces/other/pods/me"
check "may not look into another namespace" is_status 403 Forbidden "$denied get"
call GET "$pods?watch=true"
check "may not watch all" is_status 403 Forbidden "$denied watch"
call GET "$pods/me/log?container=main"
check "may not read logs" is_status 403 Forbidden "resource \"pods/log\""
call POST "$pods" "$(pod evil)"
check "may not create" is_status 403 Forbidden "$denied create"
call DELETE "$pods/me"
check "may not delete itself" is_status 403 Forbidden "$denied delete"
call PATCH "$pods/neighbour" '{"metadata": {"labels": {"x": "y"}}}' application/merge-patch+json
check "may not patch its neighbour" is_status 403 Forbidden "$denied patch"
call PATCH "$pods/me" '{"metadata": {"labels": {"x": "y"}}}' application/merge-patch+json
check "may not label itself" is_status 403 Forbidden "may change only its deadline and the images of its own containers other than the first"
call PATCH "$pods/me" '{"spec": {"containers": [{"name": "main", "image": "evil"}]}}' application/strategic-merge-patch+json
check "may not change its first container's image" is_status 403 Forbidden "other than the first"
call PATCH "$pods/me" '{"spec": {"containers": [{"name": "payload", "image": "localhost/demo/busybox:2"}]}}' application/strategic-merge-patch+json
check "may change another's" equal "$code" 200
check "  which then runs it" container_comes_to 15 me '"\(.restartCount) \(.image)"' "1 localhost/demo/busybox:2" payload
in_env bash -c 'for ((n = 0; n < 20; ++n)); do curl -sS --unix-socket "$1" "http://x$2?watch=true&timeoutSeconds=20&fieldSelector=metadata.name%3Dme" & done >/dev/null 2>&1; wait' bash "$socket" "$pods" &
watchers+=($!)
many() { call GET "$pods/me"; [[ $code == 503 ]]; }
check "has 16 connections and no more" wait_until 5 "503" many
socket=""
call DELETE "$pods/me?gracePeriodSeconds=0"
call DELETE "$pods/neighbour?gracePeriodSeconds=0"
check "its connections end with it" in_time 10 wait "${watchers[-1]}"
wait_until 10 "the end of me" gone me
check "and so does its socket" test ! -e "$state/pods/$uid"
end_watches
