# shellcheck shell=bash
# podhost is killed again and again in the middle of creations, switches and deletions; in the end all is as asked.

strategic=application/strategic-merge-patch+json
body_of_pod() { pod "$1" ".spec.shareProcessNamespace = true | .spec.terminationGracePeriodSeconds = 1 | .spec.containers[0].command = [\"sleep\", \"$2\"]"; }  # NAME SECONDS
quiet() { curl -sS --max-time 5 --unix-socket "$GLIDEPOD_ENV/podhost.sock" -o /dev/null "$@" 2>/dev/null; }
for n in 1 2 3; do create "old-$n" ".spec.containers[0].command = [\"sleep\", \"310$n\"]"; create "doomed-$n" ".spec.containers[0].command = [\"sleep\", \"320$n\"]"; done
for n in 1 2 3; do runs "old-$n"; runs "doomed-$n"; done
for n in 1 2 3; do
    {
        quiet -X PATCH -H "Content-Type: $strategic" "http://x$pods/old-$n" -d '{"spec": {"containers": [{"name": "main", "image": "localhost/demo/busybox:2"}]}}'
        quiet -X DELETE "http://x$pods/doomed-$n"
        quiet -H 'Content-Type: application/json' "http://x$pods" -d "$(body_of_pod "new-$n" "330$n")"
    }
    sleep "0.$((n * 2))"
    env_stop podhost KILL
    start_podhost >/dev/null
done
podhost_pid=$(in_env_pid podhost)
for n in 1 2 3; do
    check "a switch cut off: old-$n runs the new image" container_comes_to 20 "old-$n" '"\(.image) \(.state | keys[0])"' "localhost/demo/busybox:2 running"
    check "  once" processes 1 "sleep 310$n"
    check "a deletion cut off: doomed-$n is gone" wait_until 10 "the end of doomed-$n" gone "doomed-$n"
    check "  with its process" processes 0 "sleep 320$n"
    check "a creation cut off: new-$n runs" runs "new-$n"
    check "  once" processes 1 "sleep 330$n"
done
counts() { env_podman ps --all --format '{{.Labels}}' | grep -c "podhost.container"; }
six() { (($(counts) == 6)); }
check "podman has one container for each" wait_until 5 "six containers" six

# Many switches and creations later podhost holds no more than before.
descriptors() { find "/proc/$podhost_pid/fd" -mindepth 1 | wc -l; }
sleep 1
before=$(descriptors)
for n in {1..6}; do
    image=localhost/demo/busybox:$((n % 2 + 1))
    call PATCH "$pods/old-1" "{\"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"$image\"}]}}" "$strategic"
    create brief '.spec.containers[0].command = ["true"]'
    pod_comes_to 10 brief .status.phase Succeeded
    call DELETE "$pods/brief?gracePeriodSeconds=0"
    wait_until 10 "the end of brief" gone brief
    # Changed back in the middle of a switch, it would still show the image of the container that is being stopped.
    check "old-1 switches to $image" container_comes_to 10 old-1 '"\(.image) \(.state | keys[0])"' "$image running"
done
no_more() { (($(descriptors) <= before + 3)); }
check "no descriptor is left of six switches and six pods" wait_until 5 "the descriptors" no_more
check "nor a process" processes 1 "sleep 3101"
check "all of these can be deleted" delete_all
