"""The lists of mutants: FILE, kind, text and reason, with tabs between."""
import re
import sys


def read_list(path):
    """Its rows."""
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]
    wrong = [row for row in rows if len(row) != 4 or not row[3].strip()]
    if wrong:
        sys.exit(f"mutants: {path}: not FILE, kind, text and reason: {wrong[0]}")
    return rows


def shape(file, kind, text):
    """What stays of one where names change."""
    return file, kind, re.sub(r"[A-Za-z_]\w*", "name", text)
