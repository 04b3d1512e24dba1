#!/usr/bin/env python3
"""What tests/e2e/soak submits, which faults meet it, and the accounting at the end.

usage: soak.py plan SEED JOBS FOLDER REGISTRY   FOLDER/OWNER.submit, plan.json, and faults: lines "PAUSE FAULT NUMBER"
       soak.py judge FOLDER                     with history.json, killed, held.json, and OWNER/: logs and outputs

The judge prints lines "ok: WHAT" and "not ok: WHAT", each "not ok" after what is wrong.
"""

import json
import os
import random
import re
import sys

from judging import tell

OWNERS = ("alice", "bob", "carol")
IMAGES = ("demo/busybox:1", "demo/busybox:2", "demo/tools:1", "demo/run:1", "demo/none:1")
CANNOT_START = "demo/blocked:1"
OUT_OF_RESOURCES = 34  # HTCondor's hold reason code
DOES_NOT_EXIST = "demo/nosuch:9"
# How often each comes about. Of jobs: an end by code, by signal, with processes and files left, with all of /dev/shm
# filled, out of memory; and images that cannot be used, which are held.
JOBS = {"code": 74, "signal": 8, "leave": 8, "fill": 3, "memory": 3, "blocked": 2, "missing": 2}
FAULTS = {"glue": 20, "job": 15, "starter": 15, "agent": 8, "node": 12, "api": 8, "pod": 7, "wedge": 15}
PAUSE = (0.3, 2.5)  # seconds between two faults

HEADER = """universe = vanilla
log = soak.log
output = $(Id).out
error = $(Id).err
should_transfer_files = yes
request_cpus = 1
request_memory = 64MB
request_disk = 1MB
job_lease_duration = 20
executable = /jobs/soak
transfer_executable = true
container_image = docker://{registry}/$(Image)
arguments = $(Id) $(Seconds) $(End)
+SoakId = "$(Id)"
queue Id, Image, Seconds, End from (
"""


def plan(seed, jobs, folder, registry):
    chance = random.Random(seed)
    submit = {owner: HEADER.format(registry=registry) for owner in OWNERS}
    expected = {}
    for number in range(jobs):
        kind = chance.choices(list(JOBS), list(JOBS.values()))[0]
        owner, image = chance.choice(OWNERS), chance.choice(IMAGES)
        end = str(chance.randrange(1, 120)) if kind in ("code", "blocked", "missing") else kind
        image = {"blocked": CANNOT_START, "missing": DOES_NOT_EXIST}.get(kind, image)
        name = f"j{number:04}"
        expected[name] = {"owner": owner, "image": image, "kind": kind, "end": end}
        submit[owner] += f"  {name}, {image}, {chance.choice((0, 0, 0.5, 1, 3))}, {end}\n"
    for owner, text in submit.items():
        write(folder, f"{owner}.submit", text + ")\n")
    write(folder, "plan.json", json.dumps(expected))
    faults = chance.choices(list(FAULTS), list(FAULTS.values()), k=2000)
    write(folder, "faults", "".join(f"{chance.uniform(*PAUSE):.2f} {fault} {chance.randrange(1 << 30)}\n" for fault in faults))


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def read(folder, name):
    try:
        with open(os.path.join(folder, name), errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def judge(folder):
    expected = json.loads(read(folder, "plan.json"))
    killed = set(read(folder, "killed").split())
    ended, held = by_name(read(folder, "history.json")), by_name(read(folder, "held.json"))
    logs = {owner: events(read(folder, f"{owner}/soak.log")) for owner in OWNERS}
    wrong_end, wrong_image, wrong_count, starts = [], [], [], 0
    for name, job in expected.items():
        ads = ended.get(name, []) + held.get(name, [])
        if len(ads) != 1:
            wrong_end.append(f"{name} ({job['image']}, {job['end']}) is there {len(ads)} times")
            continue
        ad = ads[0]
        number = f"{ad['ClusterId']}.{ad['ProcId']}"
        log = logs[job["owner"]].get(number, [])
        wrong = held_wrong(job, ad) if job["kind"] in ("blocked", "missing") else end_wrong(job, ad, name in killed)
        if wrong:
            wrong_end.append(f"{name} ({job['owner']}, {job['image']}, {job['end']}): {wrong}; job {number}, events {' '.join(log)}")
            continue
        if ad["JobStatus"] == 5:
            continue
        starts += log.count("001")
        # One start, and one more for each time that HTCondor says why it had to be.
        again = sum(log.count(event) for event in ("004", "007", "024", "040.again"))
        if log.count("005") != 1 or log.count("001") > 1 + again:
            wrong_count.append(f"{name}: {' '.join(log)}")
        said = read(folder, f"{job['owner']}/{name}.out")
        # What was written last before a kill may be lost, but not be another's.
        if said != f"soak {name} {job['image']}\n" and not (name in killed and said == ""):
            wrong_image.append(f"{name} ({job['image']}) said {said!r}")
    print(f"   {len(expected)} jobs, {starts} starts, {len(killed)} of them killed")
    tell("every job ended as it should", wrong_end)
    tell("once, and started again only where HTCondor says why", wrong_count)
    tell("each in its own image", wrong_image)


def by_name(text):
    result = {}
    for ad in json.loads(text) if text.strip() else []:
        result.setdefault(ad.get("SoakId"), []).append(ad)
    return result


def end_wrong(job, ad, killed):
    if job["end"] == "memory" and ad["JobStatus"] == 5 and ad.get("HoldReasonCode") == OUT_OF_RESOURCES:
        return None
    if ad["JobStatus"] != 4:
        return f"status {ad['JobStatus']}, {ad.get('HoldReason', '')}"
    got = "signal " + str(ad.get("ExitSignal")) if ad.get("ExitBySignal") else str(ad.get("ExitCode"))
    want = {"signal": "signal 9", "memory": "signal 9", "leave": "7", "fill": "7"}.get(job["end"], job["end"])
    if got == want or (killed and got == "signal 9"):
        return None
    return f"ended with {got}"


def held_wrong(job, ad):
    reason = ad.get("HoldReason", "")
    if ad["JobStatus"] == 5 and job["image"] in reason:
        return None
    return f"status {ad['JobStatus']}, not held for its image: {reason}"


def events(log):
    """The numbers of the events of each job, in order."""
    result = {}
    for number, cluster, process in re.findall(r"^(\d{3}) \((\d+)\.(\d+)\.\d+\)", log, re.MULTILINE):
        result.setdefault(f"{int(cluster)}.{int(process)}", []).append(number)
    return result


if sys.argv[1] == "plan":
    plan(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
else:
    judge(sys.argv[2])
