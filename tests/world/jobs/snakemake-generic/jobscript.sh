#!/bin/sh
# properties = {"type": "single", "rule": "copy", "local": false, "jobid": 1, "cluster": {}}
cd "$_CONDOR_SCRATCH_DIR" && echo done && exit 0 || exit 1
