#!/bin/sh
for a; do echo "[$a]"; done
env
