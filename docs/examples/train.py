#!/usr/bin/env python3
import os

print("devices", os.environ.get("NVIDIA_VISIBLE_DEVICES", "none"))
try:
    import torch
    print("torch", torch.cuda.is_available() and torch.cuda.get_device_name(0))
except ImportError:
    print("torch is not in this image")
