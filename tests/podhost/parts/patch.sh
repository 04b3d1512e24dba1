# shellcheck shell=bash
# Patches: of images, which restart the container, and of all else, which are refused.

strategic=application/strategic-merge-patch+json
json=application/json-patch+json
merge=application/merge-patch+json
image() { echo "{\"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"$1\"}]}}"; }
two=$env_registry/demo/busybox:2

create p '.spec.shareProcessNamespace = true | .spec.containers[0].command = sh("echo $IMAGE_NAME; sleep 1001 & sleep 1000") | .spec.containers += [container("side"; "sleep 1002")]'
runs p
before=$(of_container p .containerID)
side=$(of_container p .containerID side)
call PATCH "$pods/p" "$(image "$two")" "$strategic"
check "strategic merge" equal "$code $(field '[.spec.containers[].image] | join(" ")')" "200 $two localhost/demo/busybox:1"
check "  the container starts again" container_comes_to 15 p .restartCount 1
check "  the new image runs" wait_until 5 "its log" log_has p demo/busybox:2
check "  image, imageID" contains "$(of_container p '.image + " " + .imageID')" "$two $env_registry/demo/busybox@sha256:"
check "  another containerID" test "$(of_container p .containerID)" != "$before"
check "  lastState tells of the one before" equal "$(of_container p '.lastState.terminated | "\(.containerID == "'"$before"'") \(.exitCode) \(.reason)"')" "true 143 Error"
check "  nothing of the old one is left" wait_until 5 "one sleep 1001" processes 1 "sleep 1001"
check "  the other container was let be" equal "$(of_container p '"\(.restartCount) \(.containerID)"' side)" "0 $side"
check "the log of before" equal "$(log_of p main previous=true)" "demo/busybox:1"
call PATCH "$pods/p" '[{"op": "test", "path": "/spec/containers/0/name", "value": "main"}, {"op": "replace", "path": "/spec/containers/0/image", "value": "localhost/demo/busybox:1"}]' "$json"
check "JSON patch" equal "$code" 200
check "  the container starts again" container_comes_to 15 p .restartCount 2
check "  an image seen before is not held back" container_is p '.state | keys[0]' running
call PATCH "$pods/p?dryRun=All" "$(image other:1)" "$strategic"
check "a dry run" equal "$code $(field '.spec.containers[0].image') $(of_pod p '.spec.containers[0].image')" "200 other:1 localhost/demo/busybox:1"
version=$(of_pod p .metadata.resourceVersion)
call PATCH "$pods/p" "$(image localhost/demo/busybox:1)" "$strategic"
check "a patch that changes nothing" equal "$code $(field .metadata.resourceVersion)" "200 $version"

refused() {  # NAME CODE REASON WORDS PATCH TYPE
    call PATCH "$pods/p" "$5" "$6"
    check "$1" is_status "$2" "$3" "$4"
}
forbidden="spec: Forbidden: pod updates may not change fields other than \`spec.containers[*].image\`"
refused "a command" 422 Invalid "$forbidden" '{"spec": {"containers": [{"name": "main", "command": ["true"]}]}}' $strategic
refused "a new container" 422 Invalid "$forbidden" '{"spec": {"containers": [{"name": "new", "image": "x"}]}}' $strategic
refused "a container less" 422 Invalid "$forbidden" '{"spec": {"containers": [{"name": "side", "$patch": "delete"}]}}' $strategic
refused "a volume" 422 Invalid "$forbidden" '{"spec": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}}' $strategic
refused "securityContext" 422 Invalid "$forbidden" '[{"op": "add", "path": "/spec/containers/0/securityContext", "value": {"privileged": true}}]' $json
refused "an empty image" 422 Invalid "spec.containers[0].image: Required value" "$(image '')" $strategic
refused "an image that is no text" 422 Invalid "spec.containers[0].image: Required value" '{"spec": {"containers": [{"name": "main", "image": 5}]}}' $strategic
refused "the name" 422 Invalid "metadata.name" '{"metadata": {"name": "q"}}' $merge
refused "another uid" 409 Conflict "the object has been modified" '{"metadata": {"uid": "x"}}' $merge
call PATCH "$pods/p" '{"metadata": {"resourceVersion": "1"}, "spec": {"containers": [{"name": "main", "image": "x"}]}}' $strategic
check "an old resourceVersion" is_status 409 Conflict "the object has been modified"
refused "no merge key" 400 BadRequest "does not contain declared merge key: name" '{"spec": {"containers": [{"image": "x"}]}}' $strategic
refused "no JSON" 400 BadRequest "error decoding patch" '{"spec"' $strategic
refused "a list as a merge" 400 BadRequest "error decoding patch" '[]' $strategic
refused "an object as a JSON patch" 400 BadRequest "a JSON patch must be a list" '{}' $json
refused "a test that fails" 422 Invalid "test failed" '[{"op": "test", "path": "/spec/containers/0/name", "value": "x"}]' $json
refused "a path that is none" 422 Invalid "error in our request" '[{"op": "replace", "path": "/spec/nope/0", "value": "x"}]' $json
refused "a path into a text" 422 Invalid "error in our request" '[{"op": "add", "path": "/metadata/name/x", "value": "x"}]' $json
refused "an index far away" 422 Invalid "error in our request" '[{"op": "add", "path": "/spec/containers/4000000000/image", "value": "x"}]' $json
refused "copy" 422 Invalid "unsupported operation copy" '[{"op": "copy", "from": "/spec", "path": "/metadata/labels/x"}]' $json
refused "the whole document" 400 BadRequest "must have metadata and spec" '[{"op": "replace", "path": "", "value": 1}]' $json
refused "too many operations" 413 RequestEntityTooLarge "maximum operations" "[$(yes '{"op":"test","path":"/kind","value":"Pod"}' | head -1001 | paste -sd,)]" $json
refused "a Content-Type that is none" 415 UnsupportedMediaType "apply-patch" '{}' application/apply-patch+yaml
call PATCH "$pods/nope" '{}' "$strategic"
check "a patch of none" is_status 404 NotFound 'pods "nope" not found'
call PUT "$pods/p" "$(of_pod p '.spec.containers[1].image = "'"$two"'" | tojson')"
check "PUT of an image" equal "$code" 200
check "  only that container starts again" container_comes_to 15 p .restartCount 1 side
check "  the other does not" equal "$(of_container p .restartCount)" 2
check "labels and annotations may change" equal "$(call PATCH "$pods/p" '{"metadata": {"labels": {"app": null, "a": "b"}, "annotations": {"c": "d"}}}' $merge && field '[.metadata.labels, .metadata.annotations] | tojson')" '[{"a":"b"},{"c":"d"}]'

# Patched again while the image of before is still being pulled: the last one wins.
for tag in nope-1 nope-2 busybox:2; do call PATCH "$pods/p" "$(image "$env_registry/demo/$tag")" "$strategic"; done
check "patched three times in a row: the last one runs" container_comes_to 15 p '"\(.image) \(.state | keys[0])"' "$two running"
call DELETE "$pods/p?gracePeriodSeconds=0"

# To an image that cannot be started, whose container is ready to fail before the present one has ended.
create stubborn '.spec.containers[0].command = sh("trap : TERM; while :; do sleep 1003 & wait; done")'
runs stubborn
call PATCH "$pods/stubborn" "$(image localhost/demo/static:1)" "$strategic"
check "to an image that cannot be started" container_comes_to 15 stubborn '.state.waiting.reason | test("RunContainerError|CrashLoopBackOff")' true
check "  the one before has been killed" wait_until 5 "its end" processes 0 "sleep 1003"
call DELETE "$pods/stubborn?gracePeriodSeconds=0"
