#!/usr/bin/env python3
import csv
import os
import sys

with open(sys.argv[1]) as file:
    values = [float(row["value"]) for row in csv.DictReader(file)]
print("mean", sum(values) / len(values))
# What NumPy and its like start as many threads by: HTCondor sets it to the job's cores.
print("threads", os.environ["OMP_NUM_THREADS"])
