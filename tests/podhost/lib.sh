# shellcheck shell=bash
# What the parts of tests/podhost/integration share: requests, pods, watches. Sourced after tests/e2e/lib.sh.

port=6443
code=""
body=""

start_podhost() {  # [OPTION...]
    env_start podhost "$GLIDEPOD_ENV/bin/podhost" --state-dir "$GLIDEPOD_ENV/podhost" \
        --socket "$GLIDEPOD_ENV/podhost.sock" --node-name "${node:-env}" --port "$port" \
        --backoff 2 --backoff-limit 4 "$@" || return
    wait_until 20 "podhost" env_podhost get
}

# One request; sets code and body.
call() {  # METHOD PATH [BODY [CONTENT_TYPE]]
    local options=(--unix-socket "${socket:-$GLIDEPOD_ENV/podhost.sock}" --max-time 20 -sS -X "$1")
    [[ $# -lt 3 ]] || options+=(-H "Content-Type: ${4:-application/json}" --data-binary "$3")
    body=$(curl "${options[@]}" -w '\n%{http_code}' "http://podhost$2" 2>&1)
    code=${body##*$'\n'}
    body=${body%$'\n'*}
}
pods=/api/v1/namespaces/default/pods
field() { jq -r "$1" <<<"$body"; }  # FILTER

# Expects the last request's code, and a Status object with this reason whose message has these words.
is_status() {  # CODE REASON WORDS
    local got
    got=$(jq -r '"\(.kind) \(.code) \(.reason) \(.message)"' <<<"$body" 2>/dev/null) || got=$body
    [[ $code == "$1" && $got == "Status $1 $2 "*"$3"* ]] ||
        { printf '   got:      %s %s\n   expected: %s %s %s\n' "$code" "$got" "$1" "$2" "$3"; return 1; }
}

# A pod of one container that sleeps, changed by a filter of jq.
pod() {  # NAME [FILTER]
    jq -n --arg name "$1" --arg registry "$env_registry" '
        {apiVersion: "v1", kind: "Pod", metadata: {name: $name, labels: {app: "test"}},
         spec: {restartPolicy: "OnFailure", terminationGracePeriodSeconds: 1,
            containers: [{name: "main", image: "localhost/demo/busybox:1", command: ["sleep", "1000"]}]}} |
        def sh($text): ["sh", "-c", $text];
        def container($name; $text): {name: $name, image: "localhost/demo/busybox:1", command: sh($text)};
        '"${2:-.}"
}
create() {  # NAME [FILTER]
    call POST "$pods" "$(pod "$@")"
    [[ $code == 201 ]] || { echo "   create $1: $code $body"; return 1; }
}

# A value of a pod's object, and of its first container's status or of that of the container named.
of_pod() { call GET "$pods/$1" && field "$2"; }  # NAME FILTER
of_container() {  # POD FILTER [CONTAINER]
    of_pod "$1" "[.status | (.initContainerStatuses, .containerStatuses)[]? | select(.name == \"${3:-main}\")][0] | $2"
}
pod_is() { [[ $(of_pod "$1" "$2") == "$3" ]]; }        # NAME FILTER VALUE
container_is() { [[ $(of_container "$1" "$2" "${4:-main}") == "$3" ]]; }  # POD FILTER VALUE [CONTAINER]
gone() { call GET "$pods/$1" && [[ $code == 404 ]]; }  # NAME

# Waits until a filter of the pod, or of a container's status, gives the value.
pod_comes_to() {  # SECONDS NAME FILTER VALUE
    wait_until "$1" "$2: $3 = $4" pod_is "$2" "$3" "$4" && return
    echo "   $2: $(of_pod "$2" '.status | tojson')"
    return 1
}
container_comes_to() {  # SECONDS POD FILTER VALUE [CONTAINER]
    wait_until "$1" "$2: $3 = $4" container_is "$2" "$3" "$4" "${5:-main}" && return
    echo "   $2: $(of_container "$2" tojson "${5:-main}")"
    return 1
}
runs() { pod_comes_to "${2:-15}" "$1" '[.status.phase, .status.containerStatuses[].ready] | map(tostring) | unique | join(" ")' "Running true"; }  # NAME [SECONDS]

# Runs a command in a container of a pod.
in_pod() {  # POD CONTAINER COMMAND...
    local id
    id=$(of_container "$1" '.containerID | sub("podman://"; "")' "$2")
    shift 2
    env_podman exec "$id" "$@"
}
log_of() {  # POD [CONTAINER] [QUERY]
    call GET "$pods/$1/log?container=${2:-main}${3:+&$3}"
    echo "$body"
}
log_has() { [[ $(log_of "$1" "${3:-main}") == *"$2"* ]]; }  # POD WORDS [CONTAINER]

# Starts a watch; its events go to FILE, one a line: "TYPE NAME", until end_watch or its time is up.
watchers=()
watch() {  # FILE QUERY [SECONDS]
    curl -sSN --unix-socket "$GLIDEPOD_ENV/podhost.sock" "http://podhost$pods?watch=true&timeoutSeconds=${3:-60}&$2" \
        >"$1" 2>"$1.error" &
    watchers+=($!)
}
end_watches() {
    local pid
    for pid in "${watchers[@]}"; do kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; done
    watchers=()
}
# The kinds of events of a pod, each once, in the order of their first.
events() {  # FILE [NAME]
    jq -r --arg name "${2:-}" 'select($name == "" or .object.metadata.name == $name) | .type' "$1" |
        awk '!seen[$0]++' | paste -sd' '
}
has_events() { [[ $(events "$1" "${3:-}") == "$2" ]]; }  # FILE EVENTS [NAME]

# Sends bytes, as printf writes them, to the TCP port and prints the answer until the other side closes.
raw() {  # SECONDS FORMAT
    in_env timeout "$1" bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && printf "$2" >&3 && cat <&3' bash "$port" "$2"
}
token() { cat "$GLIDEPOD_ENV/podhost/token"; }
# The pid, as this machine sees it, of a program of env_start's.
in_env_pid() {  # NAME
    local pid inner
    inner=$(cat "$GLIDEPOD_ENV/log/$1.pid")
    for pid in $(pgrep -f "$GLIDEPOD_ENV"); do
        [[ $(awk '/^NSpid:/ {print $NF}' "/proc/$pid/status" 2>/dev/null) == "$inner" && $(cat "/proc/$pid/comm") == "$1" ]] && echo "$pid"
    done
}
# How many processes of the environment have this command line.
processes() { [[ $(in_env pgrep -fxc "$2") == "$1" ]]; }  # COUNT COMMAND
# Whether a command ends in time, whatever it says.
in_time() {  # SECONDS COMMAND...
    local began=$SECONDS limit=$1
    shift
    "$@" >/dev/null 2>&1
    ((SECONDS - began <= limit)) || { echo "   took $((SECONDS - began)) s"; return 1; }
}
# The same from podhost's files, while it is away.
file_of_pod() { grep -l "\"name\": \"$1\"" "$GLIDEPOD_ENV"/podhost/pods/*/pod.json | head -1; }  # NAME
of_pod_file() { jq -r '"podhost-" + .metadata.uid' "$(file_of_pod "$1")"; }
of_container_file() { jq -r '.containerStatuses[0].containerID | sub("podman://"; "")' "$(dirname "$(file_of_pod "$1")")/status.json"; }
# The pid inside the environment of the conmon of a pod's first container.
conmon_of() { env_podman inspect --format '{{.State.ConmonPid}}' "$(of_container "$1" '.containerID | sub("podman://"; "")')"; }
# Deletes all pods and waits until they are gone.
delete_all() {
    local name
    call GET "$pods"
    for name in $(field '.items[].metadata.name'); do call DELETE "$pods/$name?gracePeriodSeconds=0"; done
    wait_until 20 "the end of all pods" none_left
}
none_left() { call GET "$pods" && [[ $(field '.items | length') == 0 ]]; }
