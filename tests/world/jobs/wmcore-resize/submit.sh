#!/bin/sh
echo report >Report.0.pkl
echo "cpus $(sed -n 's/^Cpus = //p' .machine.ad)"
