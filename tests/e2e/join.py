#!/usr/bin/python3
"""The steps of docs/join.md as a test follows them.

usage: join.py PAGE FOLDER    writes FOLDER/N/..., N from 1: a step's title, do-K, check, right, else; and site-K

do-K and check have the place as their first line ("on your machine", "on the central manager" ...), commands after it.
`right` has a line for each word that the check prints where the step was done, `else` one for each row of what it may
print where not; a word of a row with several is enough. site-K is the page's K-th kustomization.
"""

import pathlib
import re
import sys


def block(text):
    """Its place and its commands."""
    where, _, commands = text.partition("\n")
    if not where.startswith("# "):
        sys.exit(f"join.py: a block does not say where it runs: {where}")
    return f"{where[2:]}\n{commands}"


def words(cell):
    return re.findall(r"`([^`]+)`", cell)


def main():
    page, folder = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
    for number, text in enumerate(re.findall(r"```yaml\n# my-site/kustomization\.yaml\n(.*?)```", page, re.S)):
        (folder / f"site-{number}").write_text(text)
    sections = re.split(r"^## (?=\d+\. )", page, flags=re.M)[1:]
    for number, section in enumerate(sections, 1):
        section = re.split(r"^## ", section, flags=re.M)[0]
        step = folder / str(number)
        step.mkdir()
        (step / "title").write_text(section.split("\n")[0])
        before, mark, after = section.partition("\nCheck")
        blocks = re.findall(r"```sh\n(.*?)```", before, re.S)
        checks = re.findall(r"```sh\n(.*?)```", after, re.S)
        if not mark:  # looking is all of it
            blocks, checks = [], blocks
        elif not checks:
            checks = ["# on your machine\n" + words(after.split("\n")[0])[0] + "\n"]
        for k, text in enumerate(blocks):
            (step / f"do-{k}").write_text(block(text))
        (step / "check").write_text(block(checks[0]))
        rows = re.findall(r"^\| (.*?) \| .* \|$", section, re.M)[1:]
        (step / "right").write_text("".join(word + "\n" for word in words(rows[0])))
        (step / "else").write_text("".join("\t".join(words(row)) + "\n" for row in rows[1:] if words(row)))
    if not 8 <= len(sections) <= 12:
        sys.exit(f"join.py: {len(sections)} steps")


main()
