"""The triples of tests/e2e/hostile as real jobs: all are queued at once, and HTCondor chooses who is beside whom."""

import os
import subprocess
import time

PATIENCE = 900  # with all of them
MEANWHILE = 12000  # milliseconds of a neighbour's job
INPUTS = ("null", "folder", "file")  # that a submit description can ask for
USERS = ("alice", "bob")
# Closing its sandbox, a job keeps HTCondor from its output; jobs of a pilot job need a description of their own.
NOT_HERE = ("own-folder", "inner-pilots")


class Pool:
    def __init__(self, pid):
        with open(f"/proc/{pid}/environ", "rb") as file:
            self.environment = dict(one.split(b"=", 1) for one in file.read().split(b"\0") if b"=" in one)
        self.enter = ["nsenter", "--target", str(pid), "--mount", "--uts", "--net", "--ipc", "--pid", "--"]

    def run(self, user, command, text=None):
        become = ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "env", "-C", f"/home/{user}", f"HOME=/home/{user}",
                  f"USER={user}"] if user != "root" else []
        done = subprocess.run([*self.enter, *become, *command], input=text, capture_output=True, text=True, errors="replace",
                              env=self.environment, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]}: {done.stderr.strip()}")
        return done.stdout


def can_run(verbs, images, triple):
    image, job, _ = triple
    # What is in doubt is tried for minutes, on other nodes too, and never held by one alone at once.
    return verbs[job][1] in INPUTS and job not in NOT_HERE and images[image].end != "in doubt"


def description(image, verb, kind, tag, arguments):
    lines = ["universe = vanilla", f"container_image = docker://{image}", "executable = /jobs/hostile", "transfer_executable = true",
             f'arguments = "{verb} 0 {arguments}"', "should_transfer_files = yes", "request_cpus = 1", "request_memory = 64MB",
             "request_disk = 100MB", f"log = {tag}.log", f"output = {tag}.out", f"error = {tag}.err", "transfer_output_files = \"\"",
             f'+Tag = "{tag}"']
    if kind == "folder":
        lines += ["transfer_input_files = d", '+In = "d"', "+TransferIn = false"]
    if kind == "file":
        lines += ["input = input"]
    return "\n".join([*lines, "queue", ""])


def ended(pool, tags):
    """What became of each: its end, as a verb's table has it; those that go on are not there."""
    attributes = ["Tag", "JobStatus", "ExitBySignal", "ExitCode", "ExitSignal", "HoldReason"]
    rows = pool.run("root", ["condor_q", "-allusers", "-constraint", "JobStatus == 5", "-af:,", *attributes])
    rows += pool.run("root", ["condor_history", "-constraint", "Tag isnt undefined", "-af:,", *attributes])
    result = {}
    for row in rows.splitlines():
        tag, status, by_signal, code, number, reason = [one.strip() for one in row.split(",", 5)]
        if tag in tags:
            end = "refused" if status == "5" else f"signal {number}" if by_signal == "true" else f"exit {code}"
            result[tag] = (end, reason)
    return result


def run_all(options, run, triples):
    """Violations as (triple, what was wrong)."""
    pool = Pool(options.pool)
    expected = {}
    for user in USERS:
        pool.run(user, ["sh", "-c", "mkdir -p d && printf content >input"])
    for number, triple in enumerate(triples):
        image, job, neighbour = triple
        user = USERS[number % len(USERS)]
        _, kind, output, end = run.verbs[job]
        if run.images[image].end and end != "refused":
            end, output = run.images[image].end, ""
        jobs = [(f"job{number}", image, job, kind, "", output, end),
                (f"neighbour{number}", "plain", neighbour, "null", str(MEANWHILE), run.verbs[neighbour][2], run.verbs[neighbour][3])]
        for position, (tag, name, verb, given, arguments, said, becomes) in enumerate(jobs):
            owner = user if position == 0 else USERS[(number + 1) % len(USERS)]
            where = f"{options.pod_registry}/hostile/{name}:1"
            pool.run(owner, ["condor_submit", "-terse", "-"], description(where, verb, given, tag, arguments))
            expected[tag] = (triple, owner, f"{tag} {verb} in {name}", said, becomes)
    began = time.monotonic()
    ends = {}
    while len(ends) < len(expected) and time.monotonic() - began < PATIENCE:
        time.sleep(3)
        ends = ended(pool, expected)
    print(f"   {len(ends)} of {len(expected)} jobs have ended or are held after {time.monotonic() - began:.0f} s")
    wrong = []
    for tag, (triple, owner, what, said, becomes) in expected.items():
        end, reason = ends.get(tag, ("nothing", "it has not ended"))
        try:
            output = "" if becomes == "refused" else pool.run(owner, ["cat", f"{tag}.out"])
        except RuntimeError as error:
            output = str(error)
        if end != becomes:
            wrong.append((triple, f"{what}: {end} instead of {becomes}: {output[-200:]!r} {reason}"))
        elif output != said:
            wrong.append((triple, f"{what} said {output[-300:]!r} instead of {said[-60:]!r}"))
    held = {reason for end, reason in ends.values() if end == "refused"}
    for reason in sorted(held):
        print(f"   held: {reason[:200]}")
    if held:
        pool.run("root", ["condor_rm", "-all"])
    return wrong
