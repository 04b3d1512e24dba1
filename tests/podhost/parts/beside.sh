# shellcheck shell=bash
# A pull that takes long, here for ever, holds up its own container only.

registry_pid=$(cat "$GLIDEPOD_ENV/log/registry.pid")
patch_image() {  # POD CONTAINER IMAGE
    call PATCH "$pods/$1" "{\"spec\": {\"containers\": [{\"name\": \"$2\", \"image\": \"$3\"}]}}" application/strategic-merge-patch+json
    [[ $code == 200 ]]
}
create beside '.spec.containers += [container("second"; "sleep 1000"), container("third"; "sleep 1000")]'
check "three containers run" runs beside
# Names that no other part has had pulled.
check "two images are in the registry alone" eval 'env_push demo/busybox:2 "$env_registry/demo/beside:1" && env_push demo/tools:1 "$env_registry/demo/beside:2"'
in_env kill -STOP "$registry_pid"
check "one is to have an image that has to be pulled" patch_image beside main "$env_registry/demo/beside:1"
check "  and waits for it" container_comes_to 10 beside '.state | has("waiting")' true
check "another one, too" patch_image beside second "$env_registry/demo/beside:2"
check "the third gets one that is there" patch_image beside third localhost/demo/tools:1
check "  at once" container_comes_to 10 beside '"\(.state | has("running")) \(.restartCount)"' "true 1" third
check "while the first still waits" container_is beside '.state | has("waiting")' true
in_env kill -CONT "$registry_pid"
check "and gets its own when it can be had" container_comes_to 60 beside '"\(.state | has("running")) \(.restartCount)"' "true 1"
check "as the second does" container_comes_to 60 beside '"\(.state | has("running")) \(.restartCount)"' "true 1" second
call DELETE "$pods/beside?gracePeriodSeconds=0"
