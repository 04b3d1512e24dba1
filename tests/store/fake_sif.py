#!/usr/bin/python3
"""Puts a SIF's header before a squashfs, as Apptainer would.

usage: tests/store/fake_sif.py SQUASHFS SIF
"""
import struct
import sys


def sif_of(partition):
    offset = 4096
    header = b"#!/usr/bin/env run-singularity\n\0" + b"SIF_MAGIC\0" + b"01\0" + b"02\0" + bytes(16)
    header += struct.pack("<8q", 0, 0, 47, 48, 128, 48 * 585, offset, len(partition))
    descriptor = struct.pack("<i?III3q4q", 0x4004, True, 1, 0xF0000001, 0, offset, len(partition), len(partition), 0, 0, 0, 0)
    descriptor += b"root".ljust(128, b"\0") + struct.pack("<ii3s", 1, 2, b"02\0")
    return (header + descriptor).ljust(offset, b"\0") + partition


def main():
    with open(sys.argv[1], "rb") as squashfs, open(sys.argv[2], "wb") as sif:
        sif.write(sif_of(squashfs.read()))


if __name__ == "__main__":
    main()
