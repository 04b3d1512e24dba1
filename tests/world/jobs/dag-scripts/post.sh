#!/bin/sh
test "$1" = 5 && echo "$2" >post.txt
