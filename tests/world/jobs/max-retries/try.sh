#!/bin/sh
starts=$(sed -n 's/^NumJobStarts = //p' .job.ad)
[ "${starts:-0}" -ge 1 ] && exit 3
exit 1
