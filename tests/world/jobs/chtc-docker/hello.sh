#!/bin/sh
echo hello $1; cat input.txt >result.txt
