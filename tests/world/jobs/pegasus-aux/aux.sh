#!/bin/sh
set -e
pegasus_lite_version_major="5"
pegasus_lite_enforce_strict_wp_check="true"
# In the form of PegasusLite: a folder of its own, the task, the folder's end.
trap 'rm -rf "$pegasus_lite_work_dir"' EXIT
pegasus_lite_work_dir=$(mktemp -d "$PWD/pegasus.XXXXXX")
cd "$pegasus_lite_work_dir"
test "$A" = 1 && test "$B" = "x y"
echo "$1 done"
