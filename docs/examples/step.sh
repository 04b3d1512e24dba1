#!/bin/sh
case $1 in
    split) grep -c , data.csv ;;
    join) cat left.txt right.txt ;;
    *) echo "$1 saw $(cat split.txt)" ;;
esac >"$1.txt"
