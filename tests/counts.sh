# shellcheck shell=bash
# What the output of a test step says of its tests. Sourced by run-tests.
#
# A skipped test is told by a line "skip: NAME" of its own, by ctest in its list of what did not run, or, in a program of
# doctest, by a message "skipped: WHY". tests/skips lists those that are meant.

skips_list=$(dirname "${BASH_SOURCE[0]}")/skips

# The names of the tests that were skipped, one a line.
skips_in() {  # LOG
    awk '
        sub(/^ *skip: /, "") { print }
        /^The following tests did not run:/ { inside = 1; next }
        inside && /^$/ { inside = 0 }
        inside && sub(/^[ \t]*[0-9]+ - /, "") { sub(/ \([A-Za-z ]+\)$/, ""); print }' "$1"
}

# How many tests passed and failed: the sum of "N passed, M failed" lines and of ctest's own summaries.
count_in() {  # LOG
    awk '
        /^([a-z-]+: )?[0-9]+ passed, [0-9]+ failed/ {
            for (i = 1; i <= NF; ++i) { if ($i ~ /^passed/) passed += $(i-1); if ($i ~ /^failed/) failed += $(i-1) }
        }
        /tests passed, [0-9]+ tests failed out of/ {
            for (i = 1; i <= NF; ++i) if ($i == "failed") { lost = $(i-2) + 0; total = $(i+3) + 0 }
            failed += lost; passed += total - lost
        }
        # ctest has those among the passed ones.
        /^The following tests did not run:/ { inside = 1; next }
        inside && /^$/ { inside = 0 }
        inside && /^[ \t]*[0-9]+ - / { --passed }
        END { print passed + 0, failed + 0 }' "$1"
}

# The skips that tests/skips has for a step.
skips_meant() {  # STEP
    awk -F ' *[|] *' -v step="$1" '!/^#/ && $1 == step { print $2 }' "$skips_list"
}

# Of a step's skips: "listed NAME", "unlisted NAME", and "gone NAME" for one that is listed but did not occur.
judge_skips() {  # STEP LOG
    local name skipped meant elsewhere=""
    skipped=$(skips_in "$2")
    meant=$(skips_meant "$1")
    [[ -z ${KUBECONFIG:-} || -z ${GLIDEPOD_REGISTRY:-} ]] || elsewhere=$(skips_meant "$1@site")
    while IFS= read -r name; do
        [[ -n $name ]] || continue
        if grep -qxF -- "$name" <<<"$meant"$'\n'"$elsewhere"; then echo "listed $name"; else echo "unlisted $name"; fi
    done <<<"$skipped"
    while IFS= read -r name; do
        [[ -z $name ]] || grep -qxF -- "$name" <<<"$skipped" || echo "gone $name"
    done <<<"$meant"
}
