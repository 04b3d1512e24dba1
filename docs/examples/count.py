#!/usr/bin/env python3
import os
import sys

count = int(open("count").read()) if os.path.exists("count") else 0
count += 1  # what would take an hour
if count == 3:
    print("counted to", count)
    sys.exit(0)
with open("count.new", "w") as file:
    file.write(str(count))
os.rename("count.new", "count")  # whole, or not there
sys.exit(85)
