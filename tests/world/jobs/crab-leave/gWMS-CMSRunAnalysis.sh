#!/bin/sh
. ./CMSRunAnalysis.sh
test -f cmscp.py && test "$SCRAM_ARCH" = el8_amd64_gcc12 || exit 80001
echo '{}' >jobReport.json.1
echo '{}' >WMArchiveReport.json.1
echo "args $*"
