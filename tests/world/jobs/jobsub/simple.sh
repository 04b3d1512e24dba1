#!/bin/sh
test "$EXPERIMENT" = fermilab && test -f simple.cmd && echo "got $*"
