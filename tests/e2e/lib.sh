# shellcheck shell=bash
# What the end-to-end tests share: assertions that count, jobs, and the environment. Sourced, also for the caller's
# first argument: --kubernetes is for the environment on a real cluster instead of podhost.

if [[ ${1-} == --kubernetes ]]; then
    GLIDEPOD_ENV_KIND=kubernetes
    shift
fi
e2e_source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$e2e_source/../env/lib.sh"

e2e_passed=0
e2e_failed=0
e2e_skipped=0
e2e_skip=77  # the status of a test that cannot be run here

# Checks that a program makes: lines "ok: NAME" and "not ok: NAME" among what it says (judging.py).
judged_by() {  # WHAT COMMAND...; a COMMAND that fails is a failed check WHAT
    local line what=$1
    shift
    while IFS= read -r line; do
        case $line in
            "ok: "*) check "${line#ok: }" true ;;
            "not ok: "*) check "${line#not ok: }" false ;;
            *) echo "$line" ;;
        esac
    done < <("$@" 2>&1 || echo "not ok: $what")
}

# Reports one test: its name, then the command that must succeed.
check() {  # NAME COMMAND...
    local name=$1 began=$SECONDS
    shift
    "$@"
    report "$name" $? $((SECONDS - began)) "$*"
}
report() {  # NAME STATUS SECONDS COMMAND
    case $2 in
        0)
            echo "ok: $1$( (($3 < 2)) || echo " ($3 s)")"
            e2e_passed=$((e2e_passed + 1)) ;;
        "$e2e_skip")
            echo "skip: $1"
            e2e_skipped=$((e2e_skipped + 1)) ;;
        *)
            echo "not ok: $1 ($4, $3 s)"
            e2e_failed=$((e2e_failed + 1)) ;;
    esac
}
# For a test that cannot be run here: `skip_test WHY; return`. tests/skips says which may.
skip_test() { echo "   skipped: $1"; return "$e2e_skip"; }  # WHY

equal() {  # GOT EXPECTED
    [[ $1 == "$2" ]] || { printf '   got:      %s\n   expected: %s\n' "$1" "$2"; return 1; }
}
contains() {  # TEXT PART
    [[ $1 == *"$2"* ]] || { printf '   got:      %s\n   expected to contain: %s\n' "$1" "$2"; return 1; }
}
# A number within PERCENT of another, both maybe with decimals.
within() {  # GOT EXPECTED PERCENT
    awk -v got="$1" -v want="$2" -v percent="$3" \
        'BEGIN { d = got - want; if (d < 0) d = -d; exit !(want > 0 && d <= want * percent / 100) }' ||
        { echo "   got $1, expected $2 within $3 %"; return 1; }
}

# Runs functions test_NAME side by side, at most so many, in shells of their own, and reports each as it would alone.
check_together() {  # MOST NAME...
    local most=$1 name status seconds output=$GLIDEPOD_ENV/${0##*/}
    shift
    for name in "$@"; do
        while (($(jobs -rp | wc -l) >= most)); do wait -n; done
        (
            began=$SECONDS
            {
                "test_$name"
                status=$?
                seconds=$((SECONDS - began))
                ((status == 0 || status == e2e_skip)) || last_words
            } >"$output-$name.out" 2>&1 </dev/null
            echo "$status $seconds" >"$output-$name.end"
        ) &
    done
    for name in "$@"; do
        wait_until 1000 "$name" test -s "$output-$name.end"
        read -r status seconds <"$output-$name.end"
        cat "$output-$name.out"
        report "$name" "${status:-1}" "$seconds" "status ${status:-none}"
        rm -f "$output-$name".{out,end}
    done
    wait
}
# What a failed test's own pilot said last, or has said to its end.
last_words() {
    local log=$GLIDEPOD_ENV/$env_pilot.log
    [[ -s $log ]] || env_pilot_log >"$log" 2>&1
    echo "   the log of pod $env_pilot ends:"
    tail -n 12 "$log" | cut -c 1-300 | sed 's/^/   /'
}
e2e_summary() {
    ((e2e_failed == 0)) || ! env_running || env_pilot_log 2>&1 | tail -n 60 | sed 's/^/   /'
    echo "$e2e_passed passed, $e2e_failed failed, $e2e_skipped skipped"
    ((e2e_failed == 0 && e2e_passed > 0))
}

# Puts static programs that run in any image into the pool, as /jobs.
e2e_put_jobs() {
    local source all=$GLIDEPOD_ENV/jobs
    [[ ! -e $all ]] || return 0
    mkdir -p "$all"
    for source in "$e2e_source"/jobs/*.cpp; do
        e2e_put_program "$(basename "$source" .cpp)" "$all/$(basename "$source" .cpp)" || return
    done
    env_put_jobs "$all"
}
# One of them as a file. It is compiled once and kept in the cache.
e2e_put_program() {  # NAME FILE
    local source=$e2e_source/jobs/$1.cpp headers=("$e2e_source/jobs/$1"/*.hpp) program
    [[ -e ${headers[0]} ]] || headers=()
    program=$env_cache/jobs/$1-$(cat "$source" "${headers[@]}" | sha256sum | cut -c1-16)
    mkdir -p "$env_cache/jobs"
    if [[ ! -x $program ]]; then
        g++ -std=c++20 -O1 -static -s -Wno-unused-result -o "$program.$BASHPID" "$source" &&
            mv "$program.$BASHPID" "$program" || return
    fi
    cp "$program" "$2"
}

# Submits a description read from standard input with the usual lines added; prints the cluster's number.
submit() {  # USER
    {
        echo "universe = vanilla"
        echo "log = \$(ClusterId).log"
        echo "output = \$(ClusterId).\$(Process).out"
        echo "error = \$(ClusterId).\$(Process).err"
        echo "should_transfer_files = yes"
        echo "request_cpus = 1"
        echo "request_memory = 64MB"
        echo "request_disk = 100MB"  # those of tests/e2e/faults write half of it
        cat
    } | env_as "$1" condor_submit -terse - | sed -n 's/\..*//p'
}

# Waits until every job of the cluster has left the queue.
finished() {  # USER CLUSTER [SECONDS]
    local limit=$((${3:-300} * GLIDEPOD_SLOWNESS))
    env_as "$1" condor_wait -wait "$limit" "$2.log" >/dev/null || { echo "   job $2 did not end in $limit s"; return 1; }
    # The job's log has its end before the history does.
    wait_until 30 "job $2 to leave the queue" left_queue "$2"
}
left_queue() { local left; left=$(env_in_pool condor_q "$1" -allusers -af ProcId) && [[ -z $left ]]; }

output_of() {  # USER CLUSTER [PROCESS]
    env_as "$1" cat "$2.${3:-0}.out"
}

# One attribute of every job of a cluster from the history, by process number.
history_of() {  # CLUSTER ATTRIBUTE...
    local cluster=$1
    shift
    env_in_pool condor_history "$cluster" -af ProcId "$@" | sort -n
}

# Process ids, in the environment, of processes whose command line has the mark, other than the starter's side.
marked() {  # MARK
    in_env sh -c 'for file in $(grep -alF -e "$1" /proc/[0-9]*/cmdline); do
        process=${file%/cmdline}
        read -r name <"$process/comm" || continue
        case $name in
            apptainer|sh|grep) ;;
            *) echo "${process#/proc/}" ;;
        esac
    done' sh "$1" 2>/dev/null
}
is_marked() { [[ -n $(marked "$1") ]]; }
not_marked() { [[ -z $(marked "$1") ]]; }

# Looks at all that processes of jobs hold; fails if something leads out of its container, or there is none (doors.py).
no_door() { in_env python3 "$e2e_source/doors.py" "$@"; }  # [PID...]

# What `/jobs/leave files` has left in shared places, and segments of shared memory of slots and of pilot jobs' jobs.
left_files() {  # MARK
    local pid
    for pid in $(in_env pgrep -x glue); do in_env sh -c "ls -d /proc/$pid/root/tmp/left-$1 /proc/$pid/root/var/tmp/left-$1 /proc/$pid/root/dev/shm/left-$1" 2>/dev/null; done
    in_env sh -c "for p in \$(pgrep -x glue); do nsenter -t \$p -i cat /proc/sysvipc/shm; done" 2>/dev/null |
        awk '$8 >= 20001 && $8 <= 20064 || $8 >= 40000 && $8 < 60000'
}

# The state letters of the marked processes, as /proc has them.
states_of() {  # MARK
    local pid
    for pid in $(marked "$1"); do in_env sed 's/.*) \(.\).*/\1/' "/proc/$pid/stat"; done 2>/dev/null | sort -u | tr -d '\n'
}
all_stopped() { [[ $(states_of "$1") == T ]]; }
none_stopped() { [[ -n $(states_of "$1") && $(states_of "$1") != *T* ]]; }

# Runs a command, then expects the condition within 2 seconds of its end.
acts_within_2s() {  # CONDITION ARGUMENT... -- COMMAND...
    local condition=()
    while [[ $1 != -- ]]; do condition+=("$1"); shift; done
    shift
    "$@" >/dev/null || return
    local began=${EPOCHREALTIME/[.,]/}
    wait_until 2 "${condition[*]}" "${condition[@]}" || return
    echo "   ${condition[*]} after $(((${EPOCHREALTIME/[.,]/} - began) / 1000)) ms"
}

# The environment for a test program: the one GLIDEPOD_ENV names, which then stays up, or a new one until the program
# ends. Its pilot has payload containers enough for tests side by side. Compiles the jobs and puts them where the pool's
# users find them.
e2e_containers=16
e2e_env() {
    local wide
    wide="$(env_wide "$e2e_containers") | $(env_setting MEMORY 20480)"
    if env_running; then
        trap 'e2e_end' EXIT
        trap 'exit 130' INT TERM
        if (($(env_pod | jq '.spec.containers | length') <= e2e_containers)); then
            env_pilot_pod "$wide" >"$GLIDEPOD_ENV/wide.json" &&
                env_delete_pod "$env_pilot" 5 && env_start_pilot "$GLIDEPOD_ENV/wide.json" || return
        fi
    else
        # Whoever is impatient would end e2e_end, and env_down would not come.
        trap 'trap "" INT TERM HUP; e2e_end; env_down' EXIT
        trap 'exit 130' INT TERM
        env_up "${GLIDEPOD_BUILD:-$env_tree/build/dev}" "$wide" || return
    fi
    e2e_put_jobs
}

# A pilot of its own for a test, which then speaks of it: env_in_pilot and so on. Its jobs say +Pilot = NAME.
start_pilot() {  # NAME CONTAINERS [FILTER]
    env_pilot=$1
    env_pilot_pod "$(env_wide "$2") | $(env_setting ADDITIONAL_REQUIREMENTS "TARGET.Pilot =?= \\\"$1\\\"") | ${3:-.}" \
        >"$GLIDEPOD_ENV/$1.json" && env_start_pilot "$GLIDEPOD_ENV/$1.json"
}
end_pilot() {
    env_pilot_log >"$GLIDEPOD_ENV/$env_pilot.log" 2>&1
    env_end_pod "$env_pilot" 2
}

# Submits to the test's own pilot.
submit_here() {  # USER
    {
        echo "+Pilot = \"$env_pilot\""
        echo "requirements = TARGET.K8SPodName == \"$env_pilot\""
        cat
    } | submit "$1"
}
shell_job() { echo "container_image = docker://$1"; shell_lines "$2"; }  # IMAGE SCRIPT
shell_lines() {  # SCRIPT
    printf 'executable = /bin/sh\ntransfer_executable = false\narguments = "-c '"'%s'"'"\n' "${1//\"/\"\"}"
}

status_is() { env_job_has "$1" JobStatus "$2"; }

# Runs a job that says which image it is in, and ends with code 4.
runs_in() {  # IMAGE NAME [USER]
    local job user=${3:-alice}
    job=$({ shell_job "$1" "cat /etc/image-name; exit 4"; echo queue; } | submit_here "$user")
    finished "$user" "$job" && equal "$(history_of "$job" ExitBySignal ExitCode)" "0 false 4" &&
        equal "$(output_of "$user" "$job")" "$2"
}
# Codes (empty: any) and parts of the reason of a job that is to be held, and is then removed; how often it started is
# in `starts`.
is_held() {  # JOB CODES WORDS...
    local job=$1 codes=$2 word result=0
    shift 2
    wait_until 180 "the hold of $job" status_is "$job.0" 5 || { env_as alice tail -n 20 "$job.log"; return 1; }
    echo "   held: $(env_job "$job.0" HoldReason)"
    [[ -z $codes ]] || equal "$(env_job "$job.0" HoldReasonCode HoldReasonSubCode)" "$codes" || result=1
    for word in "$@"; do contains "$(env_job "$job.0" HoldReason)" "$word" || result=1; done
    starts=$(env_job "$job.0" NumJobStarts)
    env_as alice condor_rm "$job" >/dev/null
    return $result
}
# A job whose image cannot be had is held, with these words.
image_is_refused() {  # IMAGE WORDS
    is_held "$({ shell_job "$1" true; echo queue; } | submit_here alice)" "" "$1" "$2"
}

# Ends what is still under way.
e2e_end() {
    local job
    for job in $(jobs -p); do kill "$job" 2>/dev/null; done
}
