# shellcheck shell=bash
# Create, get, list with selectors, delete with grace and preconditions.

names() { call GET "$1" && field '[.items[].metadata.name] | join(" ")'; }  # PATH
unreserved() { jq -rn --arg text "$1" '$text | @uri'; }
by_label() { names "$pods?labelSelector=$(unreserved "$1")"; }
by_field() { names "$pods?fieldSelector=$(unreserved "$1")"; }

check "create one" create one '.metadata.labels = {app: "a", tier: "x"}'
check "  its answer is the pod" equal "$(field '[.kind, .metadata.namespace, .spec.nodeName, .status.phase, (.metadata.uid | length)] | map(tostring) | join(" ")')" "Pod default env Pending 36"
check "  with the API server's defaults" equal "$(field '.spec | [.dnsPolicy, .containers[0].imagePullPolicy, .containers[0].terminationMessagePath] | join(" ")')" "ClusterFirst IfNotPresent /dev/termination-log"
create two '.metadata.labels = {app: "a"}'
call POST "$pods" "$(pod three '.metadata.namespace = "other"')"
check "a namespace that contradicts the path" is_status 400 BadRequest "does not match the namespace"
call POST /api/v1/namespaces/other/pods "$(pod three '.metadata.labels = {app: "b"}')"
check "another namespace" equal "$code" 201
call POST "$pods" "$(pod one)"
check "the same name again" is_status 409 AlreadyExists 'pods "one" already exists'
call POST "$pods?dryRun=All" "$(pod dry)"
check "create as a dry run" equal "$code $(of_pod dry .reason)" "201 NotFound"
call POST "$pods" "$(pod x '.metadata |= {generateName: "made-"}')"
made=$(field .metadata.name)
check "generateName" contains "$made" made-
check "list" equal "$(names "$pods")" "$made one two"
check "list of all namespaces" equal "$(names /api/v1/pods)" "$made one two three"
call GET "$pods"
check "  a PodList with a version" equal "$(field '[.kind, .apiVersion, (.metadata.resourceVersion | test("^[0-9]+$"))] | map(tostring) | join(" ")')" "PodList v1 true"
check "labels: equal" equal "$(by_label app=a)" "one two"
check "labels: not equal" equal "$(by_label 'app!=a')" "$made"
check "labels: in, exists" equal "$(by_label 'app in (a,b),tier')" "one"
check "labels: missing" equal "$(by_label 'app=a,!tier')" "two"
check "fields: name" equal "$(by_field metadata.name=two)" "two"
check "fields: not name" equal "$(by_field 'metadata.name!=two,spec.nodeName=env')" "$made one"
call GET "$pods?labelSelector=a%20b%20c"
check "a selector that is none" is_status 400 BadRequest "unable to parse requirement"
call GET "$pods?fieldSelector=spec.hostname%3Dx"
check "a field not served" is_status 400 BadRequest "field label not supported: spec.hostname"
runs one && runs two
check "fields: phase" contains "$(by_field status.phase=Running)" "one two"
check "status as a subresource" equal "$(call GET "$pods/one/status" && field .status.phase)" Running
check "its address" contains "$(of_pod one .status.podIP)" "10.88."

call DELETE "$pods/one" '{"preconditions": {"uid": "other"}}'
check "delete with another uid" is_status 409 Conflict "the UID in the precondition (other) does not match"
call DELETE "$pods/one?dryRun=All"
check "delete as a dry run" equal "$code $(field '.metadata.deletionTimestamp != null') $(of_pod one '.metadata.deletionTimestamp')" "200 true null"
call DELETE "$pods/one" '{"dryRun": ["All"], "gracePeriodSeconds": 0}'
check "  asked for in the body" equal "$code $(of_pod one '.metadata.deletionTimestamp')" "200 null"
call DELETE "$pods/one?gracePeriodSeconds=-1"
check "a grace period below 0" is_status 400 BadRequest "gracePeriodSeconds"
call DELETE "$pods/one?gracePeriodSeconds=9223372036854775807"
check "a grace period beyond reason" is_status 400 BadRequest "gracePeriodSeconds"
uid=$(of_pod one .metadata.uid)
call DELETE "$pods/one" "{\"preconditions\": {\"uid\": \"$uid\"}, \"gracePeriodSeconds\": 1}"
check "delete" equal "$code $(field '[.kind, .metadata.deletionGracePeriodSeconds] | map(tostring) | join(" ")')" "200 Pod 1"
check "  it is gone" wait_until 10 "the end of one" gone one
check "  its folder too" test ! -e "$GLIDEPOD_ENV/podhost/pods/$uid"
call DELETE "$pods/one"
check "delete again" is_status 404 NotFound 'pods "one" not found'

# One that ends by SIGTERM, one that ignores it, and one that would take longer than it is given.
create polite '.spec.terminationGracePeriodSeconds = 20 | .spec.containers[0].command = sh("trap \"echo bye >/said/word; exit 0\" TERM; while :; do sleep 0.1; done")
    | .spec.volumes = [{name: "v", hostPath: {path: "'"$GLIDEPOD_ENV/said"'"}}] | .spec.containers[0].volumeMounts = [{name: "v", mountPath: "/said"}]'
create stubborn '.spec.containers[0].command = sh("trap \"\" TERM; while :; do sleep 0.1; done")'
runs polite && runs stubborn
call DELETE "$pods/polite"
check "SIGTERM is enough" wait_until 5 "the end of polite" gone polite
check "  and was received" equal "$(cat "$GLIDEPOD_ENV/said/word")" bye
began=$(date +%s%N)
call DELETE "$pods/stubborn?gracePeriodSeconds=2"
check "SIGKILL after the grace period" wait_until 10 "the end of stubborn" gone stubborn
check "  not before" test $((($(date +%s%N) - began) / 1000000)) -ge 2000
create stubborn '.spec.containers[0].command = sh("trap \"\" TERM; while :; do sleep 0.1; done")'
runs stubborn
call DELETE "$pods/stubborn?gracePeriodSeconds=600"
sleep 0.3
check "a grace period under way" equal "$(of_pod stubborn .metadata.deletionGracePeriodSeconds)" 600
call DELETE "$pods/stubborn?gracePeriodSeconds=0"
check "  may be shortened" wait_until 5 "the end of stubborn" gone stubborn
for name in two "$made"; do call DELETE "$pods/$name?gracePeriodSeconds=0"; done
call DELETE "/api/v1/namespaces/other/pods/three?gracePeriodSeconds=0"
