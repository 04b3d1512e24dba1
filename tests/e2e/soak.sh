# shellcheck shell=bash
# The parts of tests/e2e/soak: its pilots, its faults, and what is looked at in the end. Sourced by it.

pilots=()     # the pods that are there now
pilot_count=0 # that ever were
soak=""       # its folder

# --- the place -----------------------------------------------------------------------------------------------------

start_soak() {
    debian_packages python3 openssl || return
    env_init || return
    soak=$GLIDEPOD_ENV/soak
    mkdir -p "$soak" && : >"$soak/met" && : >"$soak/killed" && : >"$soak/api.log" && : >"$soak/calm" || return
    [[ $env_kind == kubernetes ]] || ln -sfn "$(cd "${GLIDEPOD_BUILD:-$env_tree/build/dev}" && pwd)/bin" "$GLIDEPOD_ENV/bin"
    env_start_registry && env_start_pool || return
    [[ $env_kind == kubernetes ]] || env_start_podhost || return
    start_bad_api || return
    python3 -B "$e2e_source/soak.py" plan "$seed" "$jobs" "$soak" "$env_registry" || return
    put_job && env_in_pool useradd --create-home --shell /bin/bash carol || return
    [[ $env_kind == podhost ]] || start_provisioner || return
    [[ $env_kind == kubernetes ]] || idle_podhost >"$soak/idle"
    for what in containers mounts processes; do "count_$what" >"$soak/$what.before" || return; done
    for _ in 1 2 3 4; do create_pilot || return; done
    wait_until 300 "four pilots" four_pilots && keep_measuring
}

end() {
    e2e_end
    env_down
}

# Between the agents and the API. On a cluster it has a certificate of the cluster's own authority.
start_bad_api() {
    local arguments=("$e2e_source/bad_api.py" "$seed" "$soak/api.log" "$soak/calm") pki
    if [[ $env_kind == podhost ]]; then
        env_start bad-api python3 "${arguments[@]}" sockets "$GLIDEPOD_ENV/podhost"
        return
    fi
    pki=$env_cluster/pki
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=bad-api -keyout "$soak/api.key" 2>/dev/null |
        openssl x509 -req -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -set_serial "$RANDOM" -days 1 \
            -extfile <(echo "subjectAltName=IP:$HOST_ADDRESS") -out "$soak/api.crt" 2>/dev/null || return
    python3 "${arguments[@]}" tls "$HOST_ADDRESS" 9444 "$soak/api.crt" "$soak/api.key" \
        "$(env_kubectl config view -o jsonpath='{.clusters[0].cluster.server}' | sed 's,https://,,')" >"$GLIDEPOD_ENV/log/bad-api.log" 2>&1 &
}

# One that looks at the queue and the pods every second, through the same weather, and may make none: what it is there
# for is to be measured.
start_provisioner() {
    local manifests=$env_manifests/provisioner
    sed "s|central-manager.glidepod-system|$env_pool_address|; s|registry.example.org|$env_registry|; s/^sleep_time=.*/sleep_time=1/" \
        "$manifests/provisioner.conf" >"$soak/provisioner.conf" || return
    printf '[k8s]\nmax_submit_pods_per_cluster=0\n' >>"$soak/provisioner.conf"
    env_start_provisioner "$soak/provisioner.conf" "$manifests/pilot-pod.json" "$HOST_ADDRESS" 9444
}

# Each job says which one it is and in which image, and ends as it is told.
put_job() {
    mkdir -p "$soak/program" && cat >"$soak/program/soak" <<'END' && chmod 0755 "$soak/program/soak" && env_put_jobs "$soak/program"
#!/bin/sh
echo "soak $1 $(cat /etc/image-name)"
sleep "$2"
case $3 in
    signal) kill -KILL $$ ;;
    leave)
        sleep 3600 &
        for folder in /tmp /var/tmp /dev/shm; do mkdir "$folder/$1" && echo left >"$folder/$1/file"; done
        exit 7 ;;
    fill)
        dd if=/dev/zero of=/dev/shm/$1 bs=1M count=64 2>/dev/null  # before 1.22 the limit is not the mount's
        exit 7 ;;
    memory) exec dd if=/dev/zero of=/dev/null bs=400M count=2 ;;
    *) exit "$3" ;;
esac
END
}

create_pilot() {
    pilot_count=$((pilot_count + 1))
    env_pilot=soak-$pilot_count
    # Slots that are no more are told from others by their age.
    env_pilot_pod "$(env_wide 4) | $(env_setting MEMORY 2048) | $(env_setting _CONDOR_UPDATE_INTERVAL 5) |
        $(env_setting _CONDOR_ALIVE_INTERVAL 20) | .metadata.labels.soak = \"yes\" |
        (.spec.containers[] | select(.name | startswith(\"payload-\"))).resources = {limits: {memory: \"256Mi\"}}
        $([[ $env_kind == podhost ]] || echo "| $(env_setting KUBERNETES_SERVICE_HOST "$HOST_ADDRESS") |
            $(env_setting KUBERNETES_SERVICE_PORT 9444)")" >"$soak/$env_pilot.json" &&
        env_create_pod "$soak/$env_pilot.json" && pilots+=("$env_pilot")
}
slots() { env_in_pool condor_status -constraint "${1:-true} && LastHeardFrom > time() - 20" -af Name; }  # [CONSTRAINT]
four_pilots() { (($(slots 'SlotType == "Partitionable"' | wc -l) == 4)); }

submit_plan() {
    local owner
    for owner in alice bob carol; do env_as "$owner" condor_submit -terse - <"$soak/$owner.submit" >/dev/null || return; done
}

# --- the storm -----------------------------------------------------------------------------------------------------

# How many jobs are neither ended nor held.
remaining() {
    local states
    states=$(env_in_pool condor_q -allusers -af JobStatus 2>/dev/null) || { echo "$jobs"; return; }
    grep -c '[1-46]' <<<"$states"
}
all_done() { [[ $(remaining) == 0 ]]; }
where_they_are() {
    local name
    env_in_pool condor_status -constraint "SlotType == \"Dynamic\"" -af:V Name GlidepodJob GlidepodState GlidepodContainer GlidepodWaitsFor
    for name in "${pilots[@]}"; do
        env_pilot=$name
        env_pod | jq -c '.metadata.name, (.spec.containers[] | [.name, .image]), (.status.containerStatuses[] | [.name, .image, .restartCount, .state, .lastState])'
    done 2>/dev/null | cut -c 1-400 | sed 's/^/   /'
}

storm() {
    local pause fault number
    while read -r pause fault number; do
        sleep "$pause"
        (($(remaining) > jobs / 10)) || return 0
        ((SECONDS - began < 60 + jobs * 4)) || { echo "   the storm is ended by its time"; return; }
        echo "$((SECONDS - began)) $fault $number" >>"$soak/met"
        "meet_$fault" "$number" </dev/null >>"$soak/storm.log" 2>&1
        keep_measuring
        replace_ended_pilots
    done
}

# A signal for one of the processes of this name.
signal_one() {  # SIGNAL NUMBER NAME [OPTION OF PGREP...]
    local pids
    mapfile -t pids < <(in_env pgrep -x "$3" "${@:4}" | sort -n)
    ((${#pids[@]} == 0)) || in_env kill -s "$1" "${pids[$2 % ${#pids[@]}]}"
}
meet_glue() { signal_one KILL "$1" glue; }
meet_wedge() { signal_one STOP "$1" glue; }
# Not one of its children that has yet to become what it runs: to HTCondor that is the job's own end.
meet_starter() { signal_one KILL "$1" condor_starter -P "$(in_env pgrep -d, -x condor_startd)"; }
meet_agent() { signal_one KILL "$1" pilot-agent; }
# What became of that one it is excused for.
meet_job() {
    local found pid name
    mapfile -t found < <(running_jobs)
    ((${#found[@]})) || return
    read -r pid name <<<"${found[$1 % ${#found[@]}]}"
    echo "$name" >>"$soak/killed"
    in_env kill -KILL "$pid"
}
# "PID NAME" of the jobs' main processes.
running_jobs() {
    in_env sh -c 'for process in /proc/[0-9]*; do
        [ "$(cat $process/comm 2>/dev/null)" = soak ] && tr "\0" " " <$process/cmdline | awk -v pid="${process#/proc/}" "
            { for (i = 1; i <= NF; ++i) if (\$i ~ /\/soak\$/) { print pid, \$(i + 1); exit } }"
    done'
}
meet_pod() {
    local index=$(($1 % ${#pilots[@]}))
    env_end_pod "${pilots[index]}" 2
    unset "pilots[index]"
    pilots=("${pilots[@]}")
    create_pilot
}
# podhost takes over no socket on which somebody listens, as the bad API does.
stop_podhost() { env_stop podhost "$1" && rm -f "$GLIDEPOD_ENV"/podhost/pods/*/volumes/*/api.sock; }  # SIGNAL
meet_node() {
    if [[ $env_kind == podhost ]]; then
        stop_podhost KILL
        env_start_podhost
    else
        env_node_kill "$( (($1 % 2)) && echo kubelet || echo containerd)"
    fi
}
meet_api() {
    if [[ $env_kind == podhost ]]; then
        stop_podhost TERM
        sleep 3
        env_start_podhost
    else
        env_node_stop kube-apiserver KILL
        sleep 3
        env_node_start kube-apiserver
    fi
}

# A pilot that the storm was too much for has failed; the provisioner would make another.
replace_ended_pilots() {
    local index phase
    for index in "${!pilots[@]}"; do
        env_pilot=${pilots[index]}
        phase=$(env_pod 2>/dev/null | jq -r .status.phase)
        [[ $phase == Failed || $phase == Succeeded ]] || continue
        echo "$((SECONDS - began)) pilot-$phase $env_pilot" >>"$soak/met"
        env_end_pod "$env_pilot" 2
        unset "pilots[index]"
        create_pilot
    done
    pilots=("${pilots[@]}")
}

# Also those whose containers the node has started so often that it waits up to five minutes with the next time: only a
# new startd removes what the one before it left.
pilots_are_back() { replace_ended_pilots && four_pilots; }

# --- the books -----------------------------------------------------------------------------------------------------

judge() {
    local owner line attributes=SoakId,ClusterId,ProcId,JobStatus,ExitCode,ExitSignal,ExitBySignal,HoldReason,HoldReasonCode
    env_in_pool condor_history -json -attributes "$attributes" >"$soak/history.json"
    env_in_pool condor_q -allusers -json -attributes "$attributes" >"$soak/held.json"
    for owner in alice bob carol; do
        mkdir -p "$soak/$owner" && env_as "$owner" tar -c . </dev/null | tar -C "$soak/$owner" -x
    done
    judged_by "the accounting" bash -o pipefail -c 'python3 -B "$1/soak.py" judge "$2" | tee "$2/judged"' - "$e2e_source" "$soak"
    what_pilots_say
    env_in_pool condor_rm -all >/dev/null 2>&1
}

# Of the jobs that ended wrong.
what_pilots_say() {
    local job number env_pilot
    while read -r job; do
        for ((number = 1; number <= pilot_count; ++number)); do
            env_pilot=soak-$number env_pilot_log 2>/dev/null </dev/null | grep -F "job=$job " | sed "s/^/   soak-$number: /"
        done
    done < <(sed -n 's/.*; job \([0-9.]*\), events .*/\1/p' "$soak/judged")
}

# A command comes to print nothing; else what it prints.
none_soon() {  # SECONDS COMMAND...
    wait_until "$1" "nothing of ${*:2}" prints_nothing "${@:2}" || { "${@:2}" | head -n 20 | sed 's/^/   /'; return 1; }
}
prints_nothing() { local said; said=$("$@") && [[ -z $said ]]; }
# With the parent, which has to reap it.
processes_left() {
    local parent line
    in_env ps -e -o uid= -o pid= -o stat= -o ppid= -o args= | awk '$1 >= 20001 && $1 <= 20064' | while read -r line; do
        parent=$(awk '{ print $4 }' <<<"$line")
        echo "$line, of $(in_env ps -o pid=,stat=,etimes=,args= "$parent")"
    done
}
files_left() {
    in_env sh -c 'for pid in $(pgrep -x glue); do
        root=/proc/$pid/root
        find $root/tmp $root/var/tmp $root/dev/shm -uid +20000 -uid -20065 2>/dev/null
        find $root/glidepod/scratch -mindepth 1 -maxdepth 1 -name "dir_*" -printf "%p of %u since %t\n" 2>/dev/null
    done; true'
}

# "PID-START NAME RSS_KIB DESCRIPTORS" of what is to keep its size.
measure() {
    in_env sh -c 'for pid in $(pgrep -x "glue|pilot-agent|podhost|provisioner"); do
        start=$(sed "s/.*) //" /proc/$pid/stat | cut -d" " -f20) && name=$(cat /proc/$pid/comm) &&
        rss=$(awk "/^VmRSS:/ { print \$2 }" /proc/$pid/status) && [ -n "$rss" ] &&
        echo "$pid-$start $name $rss $(ls /proc/$pid/fd | wc -l)"
    done' 2>/dev/null
}
measured=-5
keep_measuring() {
    ((SECONDS - measured >= 5)) || return 0
    measured=$SECONDS
    measure >>"$soak/measured"
}
# The bounds: what a process that has just begun takes more once it has seen its first jobs, and no more with the next
# hundred.
not_grown() {
    sleep 3
    measure | awk '
        BEGIN {
            kib["glue"] = 1024; kib["pilot-agent"] = 8192; kib["podhost"] = 24576; kib["provisioner"] = 8192
            # An agent that has just begun waits for its four glues, and has no watch yet.
            most_open["glue"] = most_open["provisioner"] = 3; most_open["pilot-agent"] = 12
        }
        # podhost has descriptors of each container, and not always as many of these: see idle_podhost.
        $2 == "podhost" { $4 = 0 }
        FILENAME != "-" { if (!($1 in rss)) { rss[$1] = $3; descriptors[$1] = $4 } next }
        $1 in rss {
            if ($3 - rss[$1] > most[$2]) most[$2] = $3 - rss[$1]
            if ($4 - descriptors[$1] > open[$2]) open[$2] = $4 - descriptors[$1]
            ++count[$2]
            if ($3 - rss[$1] > kib[$2] || $4 - descriptors[$1] > most_open[$2] + 0) {
                print "   " $2 " " $1 ": " rss[$1] " to " $3 " KiB, " descriptors[$1] " to " $4 " descriptors"; bad = 1
            }
        }
        END {
            for (name in count) print "   " count[name] " " name ": at most " most[name] + 0 " KiB and " open[name] + 0 " descriptors more"
            exit bad
        }' "$soak/measured" -
}

# What podhost holds open while it has no pod, which is all that it may hold when it has none again; but for its
# threads, each of which keeps a connection to podman, and libcurl's two sockets for it.
idle_podhost() { in_env sh -c 'cd /proc/$(pgrep -x podhost) && echo $(($(ls fd | wc -l) - 3 * $(ls task | wc -l)))'; }
podhost_is_idle() { (($(idle_podhost) <= $(cat "$soak/idle") + 3)); }
podhost_let_go() {
    wait_until 30 "podhost" podhost_is_idle && return
    echo "   $(cat "$soak/idle") descriptors before, $(idle_podhost) now:"
    in_env sh -c 'ls -l /proc/$(pgrep -x podhost)/fd' | sed 's/.* -> /   /; s/\[.*//' | sort | uniq -c | sort -rn | head
    return 1
}

# What there is beside the pilots, before and after them.
more_than_before() { "count_$1" | diff "$soak/$1.before" - || true; }
# A containerd that is killed while it makes a container may leave that one's shim; what ran in it is counted here.
count_processes() { in_env ps -e -o comm= | grep -E '^(conmon|glue|pilot-agent|apptainer|condor_(master|startd|starter|shadow)|catatonit)$' | sort | uniq -c; }
if [[ $env_kind == podhost ]]; then
    count_containers() { env_podman ps --all --pod --format '{{.Names}} {{.PodName}}' | sort; }
    count_mounts() { in_env awk '{ print $5 }' /proc/self/mountinfo | sort; }
    pods_left() { ls "$GLIDEPOD_ENV/podhost/pods"; }
else
    count_containers() { in_env ctr --address "$CONTAINERD_ADDRESS" --namespace k8s.io containers list --quiet | wc -l; }
    count_mounts() { in_env awk '{ print $5 }' /proc/self/mountinfo | grep -c kubelet/pods; }
    pods_left() { env_kubectl get pods -l soak=yes -o name; }
fi
delete_pilots() {
    local pod waiting=()
    for pod in "${pilots[@]}"; do
        env_delete_pod "$pod" 2 &
        waiting+=($!)
    done
    wait "${waiting[@]}"
}
