# shellcheck shell=bash
# Watches: their events in order, from a version, of a selection, and too late.

out=$GLIDEPOD_ENV/watch
mkdir -p "$out"
call GET "$pods"
begin=$(field .metadata.resourceVersion)
watch "$out/all" "resourceVersion=$begin"
watch "$out/initial" ""
watch "$out/one" "fieldSelector=metadata.name%3Dw1"
watch "$out/label" "labelSelector=app%3Dseen&resourceVersion=$begin"
watch "$out/name" "fieldSelector=metadata.name%3Dw2&resourceVersion=$begin"
watch "$out/short" "resourceVersion=$begin&allowWatchBookmarks=true" 1
create w1 && create w2
added() { [[ $(events "$out/all" w1) == ADDED* ]]; }
check "ADDED comes at once" wait_until 1 "w1" added
runs w1 && runs w2
call PATCH "$pods/w1" '{"metadata": {"labels": {"app": "seen"}}}' application/merge-patch+json
check "a label is a change" equal "$code" 200
call PATCH "$pods/w1" '{"metadata": {"labels": {"app": "unseen"}}}' application/merge-patch+json
call DELETE "$pods/w1"
call DELETE "$pods/w2"
wait_until 10 "the end of w1" gone w1
check "from a version: ADDED, MODIFIED, DELETED" wait_until 5 "events" has_events "$out/all" "ADDED MODIFIED DELETED" w1
check "from none: what there is comes first" wait_until 5 "events" has_events "$out/initial" "ADDED MODIFIED DELETED" w1
check "of one object" wait_until 5 "events" has_events "$out/one" "ADDED MODIFIED DELETED"
check "  and of no other" equal "$(jq -r .object.metadata.name "$out/one" | sort -u)" w1
check "of one object, from a version" wait_until 5 "events" has_events "$out/name" "ADDED MODIFIED DELETED" w2
check "a label that comes and goes: ADDED, DELETED" wait_until 5 "events" has_events "$out/label" "ADDED DELETED"
check "versions grow" equal "$(jq -r .object.metadata.resourceVersion "$out/all" | sort -c -n 2>&1)" ""
check "a DELETED object has the version of its deletion" test "$(jq -r 'select(.type == "DELETED" and .object.metadata.name == "w1").object.metadata.resourceVersion' "$out/all")" -gt "$(jq -r 'select(.type == "MODIFIED" and .object.metadata.name == "w1").object.metadata.resourceVersion' "$out/all" | tail -1)"
check "the last status before the end is told" equal "$(jq -r 'select(.type == "MODIFIED" and .object.metadata.name == "w1").object.status.containerStatuses[0].state | keys[0]' "$out/all" | tail -1)" terminated
check "timeoutSeconds, with a bookmark at the end" equal "$(tail -1 "$out/short" | jq -r '.type + " " + .object.kind')" "BOOKMARK Pod"

# What was missed comes at once to a watch from before it.
watch "$out/replay" "resourceVersion=$begin" 1
wait "${watchers[-1]}"
check "a watch from an old version replays" equal "$(events "$out/replay" w1)" "ADDED MODIFIED DELETED"
call GET "$pods?watch=true&resourceVersion=1"
check "too old a version" is_status 410 Expired "too old resource version: 1"
call GET "$pods?watch=true&resourceVersion=99999999999999999"
check "a version of the future" is_status 410 Expired "too old resource version"
call GET "$pods?watch=true&resourceVersion=x"
check "a version that is none" is_status 400 BadRequest "invalid resourceVersion"
call GET "$pods/nope?watch=true&timeoutSeconds=1"
check "a watch by path of an object that does not exist yet" equal "$code $body" "200 "

# A list as a watch, which kubectl 1.36 asks for in "wait" and "delete": what there is, then a bookmark that ends it.
listing="sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
create listed
watch "$out/listed" "$listing&fieldSelector=metadata.name%3Dlisted&resourceVersion=$begin"
# The pod starts meanwhile, which is told after it.
has_end() { [[ $(jq -r 'select(.type == "BOOKMARK").object.metadata.annotations["k8s.io/initial-events-end"]' "$out/listed") == true ]]; }
check "sendInitialEvents: a bookmark ends what there is" wait_until 15 "the bookmark" has_end
check "  after the pods, as ADDED" equal "$(head -1 "$out/listed" | jq -r '.type + " " + .object.metadata.name')" "ADDED listed"
call DELETE "$pods/listed?gracePeriodSeconds=0"
told_end() { [[ $(tail -1 "$out/listed" | jq -r .type) == DELETED ]]; }
check "  and then changes" wait_until 10 "DELETED" told_end
watch "$out/silent" "sendInitialEvents=false&resourceVersionMatch=NotOlderThan" 1
wait "${watchers[-1]}"
check "sendInitialEvents=false: nothing of what there is" equal "$(cat "$out/silent")" ""
call GET "$pods?watch=true&sendInitialEvents=true"
check "sendInitialEvents without resourceVersionMatch" is_status 422 Invalid "requires setting resourceVersionMatch"

# Headers but no events: a hundred watches, opened while changes come, miss none.
many() { for n in $(seq "$1" "$2"); do watch "$out/many-$n" "fieldSelector=metadata.name%3Dmany"; done; }
many 1 40
create many '.spec.containers[0].image = "localhost/demo/nope:1" | .spec.containers[0].imagePullPolicy = "Never"'
many 41 80
for n in {1..20}; do call PATCH "$pods/many" "{\"metadata\": {\"labels\": {\"n\": \"$n\"}}}" application/merge-patch+json; done
many 81 100
all_begun() { local n; for n in {81..100}; do [[ -s $out/many-$n ]] || return; done; }
wait_until 10 "the last watches" all_begun
call DELETE "$pods/many?gracePeriodSeconds=0"
complete() { [[ $(for n in {1..100}; do tail -1 "$out/many-$n" | jq -r '.type + .object.metadata.labels.n'; done | sort | uniq -c | tr -s ' ') == " 100 DELETED20" ]]; }
wait_until 10 "the end of many" gone many
check "a hundred watches all hear the end" wait_until 10 "events" complete
check "  and every change before it" equal "$(jq -r .object.metadata.labels.n "$out/many-1" | grep -v null | awk '!seen[$0]++' | paste -sd' ')" "$(seq -s' ' 20)"
end_watches
few_descriptors() { (($(find "/proc/$podhost_pid/fd" -mindepth 1 | wc -l) < 80)); }
check "podhost noticed that they left" wait_until 5 "their descriptors" few_descriptors
