#!/usr/bin/env python3
data = b"x" * 700_000_000
print("had", len(data))
