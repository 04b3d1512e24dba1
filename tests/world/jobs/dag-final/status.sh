#!/bin/sh
echo "$1 $2" >status.txt
exit 1
