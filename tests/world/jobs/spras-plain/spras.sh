#!/bin/sh
mkdir -p output/deep && cp input/a output/deep/a
