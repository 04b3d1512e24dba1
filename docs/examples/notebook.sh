#!/bin/sh
# Jobs of one pod share its network: the job's user number is a port that no other one has, and only who knows the token
# is let in.
port=$(id -u)
JUPYTER_TOKEN=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
export JUPYTER_TOKEN HOME="$PWD"
umask 077
cat >notebook.txt <<END
On the access point:  condor_ssh_to_job -ssh 'ssh -N -L 8888:127.0.0.1:$port' JOB
In the browser:       http://127.0.0.1:8888/?token=$JUPYTER_TOKEN
END
exec jupyter notebook --no-browser --ip=127.0.0.1 --port="$port"
