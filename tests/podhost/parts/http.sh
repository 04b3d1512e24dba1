# shellcheck shell=bash
# Hostile and broken clients: each gets a proper Status and nobody else notices.

call GET /nope
check "a path that is none" is_status 404 NotFound "could not find the requested resource"
call GET /api/v1/nodes
check "a resource not served" is_status 404 NotFound "could not find the requested resource"
call GET "$pods/x/exec"
check "a subresource not served" is_status 404 NotFound "could not find the requested resource"
call GET "$pods/nope"
check "a pod that is none" is_status 404 NotFound 'pods "nope" not found'
call DELETE "$pods"
check "a method not allowed" is_status 405 MethodNotAllowed "does not allow this method"
call OPTIONS "$pods"
check "OPTIONS" is_status 405 MethodNotAllowed "does not allow this method"
call POST /api/v1 '{}'
check "POST to what only reads" is_status 405 MethodNotAllowed "does not allow this method"
call POST "$pods" '{"a":'
check "malformed JSON" is_status 400 BadRequest "is not valid JSON"
call POST "$pods" '[]'
check "JSON that is no object" is_status 400 BadRequest "must be an object"
call POST "$pods" '{"metadata": 5}'
check "metadata that is no object" is_status 400 BadRequest "no metadata"
call POST "$pods" '{"metadata": {"name": 5}, "spec": []}'
check "a name that is no text" is_status 422 Invalid "metadata.name: Invalid value: must be a string"
call POST "$pods" "kind: Pod" application/yaml
check "YAML" is_status 415 UnsupportedMediaType "application/yaml"
call POST "$pods" "a=b" application/x-www-form-urlencoded
check "a form" is_status 415 UnsupportedMediaType "x-www-form-urlencoded"
deep() { head -c "$1" /dev/zero | tr '\0' '['; head -c "$1" /dev/zero | tr '\0' ']'; }
deep 1000000 >"$GLIDEPOD_ENV/deep"
call POST "$pods" "@$GLIDEPOD_ENV/deep"
check "JSON nested a million deep" is_status 400 BadRequest "is nested too deeply"
head -c 4000000 /dev/zero | tr '\0' ' ' >"$GLIDEPOD_ENV/big"
call POST "$pods" "@$GLIDEPOD_ENV/big"
check "a body of 4 MB" is_status 413 RequestEntityTooLarge "Request entity too large"
body=$(curl -sS --unix-socket "$GLIDEPOD_ENV/podhost.sock" -H 'Transfer-Encoding: chunked' -H 'Content-Type: application/json' --data-binary "@$GLIDEPOD_ENV/big" "http://podhost$pods" 2>&1)
check "  also in chunks" contains "$body" "Request entity too large"

api=/t/$(token)$pods
first() { head -n 1 | tr -d '\r'; }
check "GET over TCP" equal "$(raw 5 "GET $api HTTP/1.1\r\nConnection: close\r\n\r\n" | first)" "HTTP/1.1 200 OK"
check "what is no HTTP" equal "$(raw 5 'HELLO\r\n\r\n' | first)" "HTTP/1.1 400 Bad Request"
check "  answered by a Status" contains "$(raw 5 'HELLO\r\n\r\n')" '"kind":"Status"'
check "no Content-Length" equal "$(raw 5 "POST $api HTTP/1.1\r\n\r\n" | first)" "HTTP/1.1 411 Length Required"
check "a Content-Length below 0" equal "$(raw 5 "POST $api HTTP/1.1\r\nContent-Length: -1\r\n\r\n" | first)" "HTTP/1.1 400 Bad Request"
check "two Content-Lengths" equal "$(raw 5 "POST $api HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}" | first)" "HTTP/1.1 400 Bad Request"
check "Content-Length and chunks" equal "$(raw 5 "POST $api HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" | first)" "HTTP/1.1 400 Bad Request"
smuggled="DELETE $api/x HTTP/1.1\r\n\r\n"
check "a request smuggled in a GET's body is not answered" equal "$(raw 5 "GET $api HTTP/1.1\r\nContent-Length: ${#smuggled}\r\n\r\n$smuggled" | grep -c HTTP/1.1)" 1
check "  nor one after a request that was refused" equal "$(raw 5 "HELLO\r\n\r\n$smuggled" | grep -c HTTP/1.1)" 1
check "two requests on one connection" equal "$(raw 2 "GET $api HTTP/1.1\r\n\r\nGET $api HTTP/1.1\r\nConnection: close\r\n\r\n" | grep -c 'HTTP/1.1 200')" 2
long=$(head -c 20000 /dev/zero | tr '\0' a)
check "a path of 20000 bytes" equal "$(raw 5 "GET /$long HTTP/1.1\r\n\r\n" | first)" "HTTP/1.1 414 URI Too Long"
check "a path of 8000 bytes" contains "$(raw 5 "GET /t/$(token)/${long:0:8000} HTTP/1.1\r\nConnection: close\r\n\r\n" | first)" "HTTP/1.1 404"
headers_for_ever() { in_env timeout 20 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1"; { printf "GET / HTTP/1.1\r\n"; yes "A: b"; } >&3 2>/dev/null' bash "$port"; }
check "headers without end are cut off" in_time 15 headers_for_ever

# Half a request each, left open: other clients are served, and the admin's own socket has places kept for it.
half_open() {
    in_env bash -c 'for ((n = 0; n < 240; ++n)); do exec {fd}<>"/dev/tcp/127.0.0.1/$1" && printf "GET /api" >&"$fd"; done; touch "$2"; sleep 30' bash "$port" "$GLIDEPOD_ENV/half" 2>/dev/null &
    watchers+=($!)
    wait_until 10 "half-open connections" test -e "$GLIDEPOD_ENV/half"
    call GET "$pods"
    equal "$code" 200
}
check "240 half-open connections do not shut the admin out" half_open
check "  further ones on TCP are turned away" test "$(raw 5 "GET $api HTTP/1.1\r\n\r\n" 2>/dev/null | first)" != "HTTP/1.1 200 OK"
end_watches
in_env pkill -x -f 'sleep 30'
served() { [[ $(raw 2 "GET $api HTTP/1.1\r\nConnection: close\r\n\r\n" | first) == "HTTP/1.1 200 OK" ]]; }
check "  once they are gone TCP is served again" wait_until 10 "TCP" served
check "podhost is the same process still" equal "$(in_env_pid podhost)" "$podhost_pid"
check "  and uses less than 200 MB" test "$(awk '/VmRSS/ {print $2}' "/proc/$podhost_pid/status")" -lt 200000
