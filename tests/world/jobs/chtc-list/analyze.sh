#!/bin/sh
wc -l $1.txt >$1-out.txt
