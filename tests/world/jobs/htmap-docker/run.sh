#!/bin/sh
mkdir -p _htmap_transfer _htmap_user_transfer/$1
cat $1.in func >_htmap_transfer/$1.out
