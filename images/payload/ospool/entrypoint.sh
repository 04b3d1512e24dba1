#!/bin/bash
# Starts what it is given; where CVMFS repositories are wanted, inside cvmfsexec.
if [[ -d /cvmfs/config-osg.opensciencegrid.org ]]; then
    echo "OSG CVMFS already available (perhaps via bind-mount), skipping cvmfsexec."
    exec "$@"
elif [[ ! ${CVMFSEXEC_REPOS:-} =~ [a-z]+ ]]; then
    echo "No CVMFS repos requested, skipping cvmfsexec."
    exec "$@"
fi
mkdir -p /cvmfsexec/dist/etc/cvmfs
{
    [[ ${CVMFSEXEC_DEBUG^^} != TRUE ]] || echo 'CVMFS_DEBUGLOG="/cvmfs-logs/debuglog"'
    [[ -z ${CVMFS_HTTP_PROXY:-} ]] || echo "CVMFS_HTTP_PROXY=\"$CVMFS_HTTP_PROXY\""
    [[ -z ${CVMFS_QUOTA_LIMIT:-} ]] || echo "CVMFS_QUOTA_LIMIT=\"$CVMFS_QUOTA_LIMIT\""
} >/cvmfsexec/dist/etc/cvmfs/default.local
# cvmfsexec's first step.
unshare -rm true || {
    echo "cvmfsexec smoke test failed.  You may not have the permissions to run cvmfsexec" >&2
    [[ ${CVMFSEXEC_DEBUG^^} != TRUE ]] || echo "Log dump follows:" >&2
    exit 1
}
exec unshare -rm "$@"
