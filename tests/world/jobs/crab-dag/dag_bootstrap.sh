#!/bin/sh
# Exit code 4: later, once.
if [ "$1" = POSTJOB ]; then test "$3" = 0; exit; fi
test -f been || { touch been; exit 4; }
