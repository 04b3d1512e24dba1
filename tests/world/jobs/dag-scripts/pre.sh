#!/bin/sh
echo $1 >pre.txt
