# shellcheck shell=bash
# A Prometheus of the test's own, on loopback, with the alerts of manifests/monitoring. Sourced, after lib.sh.

source "$env_tree/tests/packages.sh"

prometheus_pid=""
prometheus_begin() {  # FOLDER TARGET...
    local folder=$1 programs
    shift
    programs=$(prometheus_programs) && mkdir -p "$folder" &&
        cp "$env_tree/manifests/monitoring/glidepod.rules.yaml" "$folder" || return
    # Which is YAML too.
    jq -n '{global: {scrape_interval: "2s", evaluation_interval: "2s"}, rule_files: ["glidepod.rules.yaml"],
        scrape_configs: [{job_name: "glidepod", static_configs: [{targets: $ARGS.positional}]}]}' \
        --args "$@" >"$folder/prometheus.yml" || return
    "$programs/prometheus" --config.file "$folder/prometheus.yml" --storage.tsdb.path "$folder/data" \
        --web.listen-address 127.0.0.1:0 >"$folder/log" 2>&1 &
    prometheus_pid=$!
    wait_until 30 "Prometheus" prometheus_says targets
}
prometheus_end() {
    [[ -z $prometheus_pid ]] || { kill "$prometheus_pid"; wait "$prometheus_pid"; } 2>/dev/null
    prometheus_pid=""
}
prometheus_says() {  # PATH [OPTION...]
    local path=$1 port
    shift
    port=$(ss -Hltnp | sed -n "s/.* 127\.0\.0\.1:\([0-9]*\) .*pid=$prometheus_pid,.*/\1/p")
    [[ -n $port ]] && curl -sf --max-time 5 "$@" "http://127.0.0.1:$port/api/v1/$path"
}
prometheus_value() { prometheus_says query --data-urlencode "query=$1" | jq -r '.data.result[].value[1]'; }  # EXPRESSION
prometheus_is() { [[ $(prometheus_value "$1") == "$2" ]]; }  # EXPRESSION VALUE
# Every rule has been evaluated, and none has failed.
prometheus_rules_hold() {
    prometheus_says rules | jq -e '[.data.groups[].rules[].health] | length > 0 and all(. == "ok")' >/dev/null
}
# What the panels ask for is answered; a panel without data is none of a fault.
prometheus_knows_panels() {
    local expression
    while read -r expression; do
        prometheus_says query --data-urlencode "query=$expression" | jq -e '.status == "success"' >/dev/null ||
            { echo "   refused: $expression"; return 1; }
    done < <(jq -r '.panels[].targets[].expr | gsub("[$]__rate_interval"; "1m")' \
        "$env_tree/manifests/monitoring/glidepod.dashboard.json")
}
