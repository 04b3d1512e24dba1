# shellcheck shell=bash
# What a command's steps took, beside their aims and what they took last. Sourced by run-demo and run-tests.
#
# Aims are seconds, from nothing, on 2 cores that have nothing else to do. They are printed always. A run fails by them
# only where --in-time asks for it: what else a machine does is no fault of what is tested.

times_kept=${GLIDEPOD_CACHE:-/var/cache/glidepod}/times  # lines COMMAND, STEP, SECONDS, with tabs between

# Prints the table of a run, and keeps its seconds for the next one. Lines of input: STEP, AIM, SECONDS, with tabs between;
# an AIM of - is none; SECONDS of a step that failed, which are not kept, have a ! before them.
times_table() {  # COMMAND
    local kept=/dev/null new
    [[ ! -f $times_kept ]] || kept=$times_kept
    mkdir -p "${times_kept%/*}" && new=$(mktemp "$times_kept.XXXXXX") || return
    # Two that end in the same moment: the last one's are kept, and no line is cut.
    awk -F '\t' -v OFS='\t' -v command="$1" -v new="$new" '
        !now { last[$1 FS $2] = $3; next }
        FNR == 1 { printf "%-52s %8s %8s %8s\n", "step", "seconds", "aim", "last" }
        {
            failed = sub(/^!/, "", $3)
            key = command FS $1
            note = failed ? "  failed" : $2 != "-" && $3 > 1.5 * $2 ? "  over" : ""
            printf "%-52s %8d %8s %8s%s\n", $1, $3, $2, key in last ? last[key] : "-", note
            if (!failed) last[key] = $3
        }
        END { for (key in last) print key, last[key] >new }' "$kept" now=1 - && mv "$new" "$times_kept"
}

# Whether a run took more than one and a half times its aim.
times_over() { [[ $2 != - ]] && ((2 * $1 > 3 * $2)); }  # SECONDS AIM
