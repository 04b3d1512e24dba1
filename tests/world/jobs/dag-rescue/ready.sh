#!/bin/sh
test -f ready
