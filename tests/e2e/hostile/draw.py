#!/usr/bin/env python3
"""Draws triples of an image, a job that attacks, and what a neighbour's job does, runs them in a pilot pod, and judges each.

Run by tests/e2e/hostile/run. Prints lines as tests do; exit code 1 if there was a violation.
"""

import argparse
import concurrent.futures
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import condor
import doors
import images as made
import pod as pods

IN_AN_IMAGE = 5  # triples one after the other, the container staying warm
# Seconds from a job's request to its first word, also on a machine that is busy: of one that finds its container warm, and
# of one whose image has to be switched to. What is usual is a hundredth of the first.
WARM, SWITCHED = 8, 60
NOT_STARTED = {255: "refused", 125: "in doubt"}  # by apptainer's exit code: it is the job's fault; others may try it
QUIET = 15  # seconds in which nothing of a job is left, its end having been told
ENOUGH = 5  # violations


def draw(seed, count, images, jobs, neighbours, prefer, able=lambda _: True):
    """So many triples, in an order in which those of an image follow each other, of those that ABLE allows. Of PREFER,
    triples with * for any, one in each five."""
    chance = random.Random(seed)
    names = [name for name, image in images.items() if image.weight > 0]
    result = []
    while len(result) < count:
        if prefer and len(result) % (2 * IN_AN_IMAGE) == IN_AN_IMAGE:
            fixed = chance.choice(prefer)
            some = [chance.choice(names), chance.choice(jobs), chance.choice(neighbours)]
            result.append(tuple(mine if mine != "*" else any_of for mine, any_of in zip(fixed, some)))
            continue
        image = chance.choices(names, [images[name].weight for name in names])[0]
        for _ in range(min(1 if images[image].end in NOT_STARTED.values() else IN_AN_IMAGE, count - len(result))):
            triple = (image, chance.choice(jobs), chance.choice(neighbours))
            if able(triple):
                result.append(triple)
    return result


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Watch(threading.Thread):
    """Looks at what the processes of jobs hold, again and again, while jobs run. What leads out of their container twice,
    a moment apart, is a door: what glue itself holds is gone once it has become the job."""

    def __init__(self):
        super().__init__(daemon=True)
        self.looks, self.processes, self.found, self.broken = 0, 0, [], ""

    def run(self):
        try:
            while True:
                began = time.monotonic()
                self.look()
                time.sleep(max(0.05, 3 * (time.monotonic() - began)))
        except Exception as error:  # a watch that has ended must be told of
            self.broken = repr(error)
            raise

    def look(self):
        for pid in doors.processes_of_jobs():
            found = self.doors_of(pid)
            if found:
                time.sleep(0.05)
                self.found += sorted(set(found) & set(self.doors_of(pid)))
        self.looks += 1

    def doors_of(self, pid):
        try:
            number, found = doors.look_at(pid)
            self.processes += 1
            return found
        except OSError:
            return []  # it has ended

    def taken(self):
        found, self.found = self.found, []
        return found + ([f"nobody looks any more: {self.broken}"] if self.broken else [])


class Run:
    def __init__(self, options, verbs):
        self.options, self.verbs = options, verbs
        self.images = made.images(b"")
        for image in self.images.values():
            image.end = image.kubelet if options.kubernetes and image.kubelet else image.end
        self.violations, self.passed, self.chunk = [], 0, 0
        self.lock = threading.Lock()
        self.waits = {True: [], False: []}
        self.watch = Watch()
        self.new_pod()
        self.watch.start()

    def new_pod(self):
        self.pod = pods.Pod(60, ["sh", "-c", self.options.log])
        if self.options.pool:
            return
        subprocess.run(["cp", self.options.program, self.pod.root(f"{pods.SCRATCH}/hostile")], check=True)
        os.chmod(self.pod.root(f"{pods.SCRATCH}/hostile"), 0o755)
        self.pod.before = self.pod.snapshot()

    def image(self, name):
        return f"docker://{self.options.registry}/hostile/{name}:1"

    def judge(self, what, verb, end, output, process, said, errors):
        code = process.returncode
        got = f"signal {-code}" if code < 0 else NOT_STARTED.get(code, "") if "up\n" not in said else ""
        got = got or f"exit {code}"
        wrong = []
        if got != end:
            wrong.append(f"{what} {verb}: {got} instead of {end}: {(said + errors)[-300:]!r}")
        elif said != output:
            wrong.append(f"{what} {verb} said {said[-300:]!r} instead of {output[-60:]!r}")
        return wrong

    def triple(self, lane, owner, warm, triple):
        """Runs one; what was wrong with its two jobs."""
        image, job, neighbour = triple
        uid, beside = 20001 + 2 * lane, 20002 + 2 * lane
        _, kind, output, end = self.verbs[job]
        if self.images[image].end and end != "refused":
            end, output = self.images[image].end, ""
        elif job == "write-pilots" and self.images[image].owned and uid == made.SLOT:
            output = output.replace("refused", f"BREACH {self.images[image].owned} closed ")
        environment = {"APPTAINERENV_HOSTILE_INNER_IMAGE": self.image("plain")} if job == "inner-pilots" else {}
        other, held = self.pod.start(f"neighbour-{lane}", beside, f"carol{lane}", self.image("plain"), neighbour, "held", uid)
        wrong = []
        patience = self.options.patience + self.images[image].patience
        starts = threading.Timer(patience, end_group, [other])
        starts.start()
        ready = other.stdout.readline().decode(errors="replace")
        starts.cancel()
        began = time.monotonic()
        process, rest = self.pod.start(f"job-{lane}", uid, owner, self.image(image), job, kind, beside, environment, job == "inner-pilots")
        if rest is not None:
            os.close(rest)
        timers = [threading.Timer(patience, end_group, [one]) for one in (process, other)]
        for timer in timers:
            timer.start()
        first = process.stdout.readline() if end not in NOT_STARTED.values() else b""
        waited = time.monotonic() - began
        said, errors = process.communicate()
        said = (first + said).decode(errors="replace")
        os.close(held)
        rest_said, rest_errors = other.communicate()
        for timer in timers:
            timer.cancel()
        wrong += self.judge("job", job, end, output, process, said, errors.decode(errors="replace"))
        wrong += self.judge("neighbour", neighbour, self.verbs[neighbour][3], self.verbs[neighbour][2], other,
                            ready + rest_said.decode(errors="replace"), rest_errors.decode(errors="replace"))
        if first and waited > (WARM if warm else SWITCHED):
            wrong.append(f"the job waited {waited:.1f} s for its container, which was {'warm' if warm else 'to be switched'}")
        with self.lock:
            if first:
                self.waits[warm].append(waited)
        return wrong

    def whole(self):
        """What is wrong with the pod when no job runs."""
        end = time.monotonic() + QUIET
        while (left := self.pod.left()) and time.monotonic() < end:
            time.sleep(0.05)
        found = [f"door: {line}" for line in self.watch.taken()]
        return found + [f"left: {line}" for line in left] + self.pod.changed() + [f"counted: {line}" for line in self.pod.counted()]

    def tell(self, triples, wrong):
        print("not ok: " + "; ".join(",".join(triple) for triple in triples))
        for line in wrong[:8]:
            print(f"   {line[:600]}")
        if len(wrong) > 8:
            print(f"   and {len(wrong) - 8} more")
        for triple in triples:
            print(f"   to repeat: {self.options.repeat} --triple {','.join(triple)}")
        sys.stdout.flush()

    def by_condor(self, triples):
        began = time.monotonic()
        wrong = condor.run_all(self.options, self, triples)
        for triple in dict.fromkeys(triple for triple, _ in wrong):
            self.violations.append(triple)
            self.tell([triple], [line for one, line in wrong if one == triple])
        if whole := self.whole():
            print("not ok: the pod afterwards")
            for line in whole[:20]:
                print(f"   {line[:600]}")
            self.violations.append(("the", "pod", "afterwards"))
        return len(triples) - len({triple for triple, _ in wrong}), time.monotonic() - began

    def renew(self):
        if self.options.renew:
            subprocess.run(["sh", "-c", self.options.renew], check=True, stdout=subprocess.DEVNULL)
            self.new_pod()

    def batch(self, lanes, work):
        """One triple in each lane at the same time, then a look at the pod. False when there is no going on."""
        jobs = [(lane, *lanes[lane], triple) for lane, triple in work]
        with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
            results = list(pool.map(lambda one: self.triple(*one), jobs))
        failed = [(triple, wrong) for (_, triple), wrong in zip(work, results) if wrong]
        whole = self.whole()
        self.passed += len(work) - len(failed)
        for triple, wrong in failed:
            self.violations.append(triple)
            self.tell([triple], wrong)
        if whole:
            self.violations += [triple for _, triple in work] if not failed else []
            self.tell([triple for _, triple in work], whole)
            self.passed -= 0 if failed else len(work)
            self.renew()
        return not failed and not whole

    def all(self, triples):
        queue = list(triples)
        lanes = {}  # owner and warmth
        chunks = []  # of triples in one image
        for triple in queue:
            if not chunks or chunks[-1][-1][0] != triple[0] or len(chunks[-1]) == IN_AN_IMAGE:
                chunks.append([])
            chunks[-1].append(triple)
        current = {lane: [] for lane in range(self.options.lanes)}
        began = time.monotonic()
        while chunks or any(current.values()):
            work, inner = [], False
            for lane, mine in current.items():
                if not mine and chunks:
                    mine = current[lane] = chunks.pop(0)
                    self.chunk += 1
                    lanes[lane] = (f"owner{self.chunk}", False)
                # Two of these at once would want more containers than there are.
                if mine and not (mine[0][1] == "inner-pilots" and inner):
                    inner |= mine[0][1] == "inner-pilots"
                    work.append((lane, mine.pop(0)))
            fine = self.batch(lanes, work)
            for lane, triple in work:
                # A job that took all that it could from its own slot has another container after it.
                lanes[lane] = (lanes[lane][0], fine and triple[1] in ("honest", "code", "sockets", "proc", "in-file"))
            if len(self.violations) >= self.options.enough:
                print(f"   {self.options.enough} violations are enough")
                break
            if self.options.seconds and time.monotonic() - began > self.options.seconds:
                break
        return self.passed, time.monotonic() - began


def table(program):
    rows = subprocess.run([program, "--table"], capture_output=True, text=True, check=True).stdout.splitlines()
    verbs = {}
    for row in rows:
        name, who, kind, output, end = row.split("|")
        verbs[name] = (who, kind, output.replace("\\n", "\n"), end)
    return verbs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--push", action="store_true", help="put the images into the registry, and end")
    parser.add_argument("--registry", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--triples", type=int, default=300)
    parser.add_argument("--triple", action="append", default=[])
    parser.add_argument("--prefer", action="append", default=[])
    parser.add_argument("--kubernetes", action="store_true", help="the pod is a kubelet's")
    parser.add_argument("--lanes", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--patience", type=float, default=60, help="seconds with a job; its end is then signal 9")
    parser.add_argument("--enough", type=int, default=ENOUGH)
    parser.add_argument("--pool", default="", help="the process of HTCondor's pool: jobs are queued there")
    parser.add_argument("--pod-registry", help="as pods reach it")
    parser.add_argument("--log", default="true", help="a command that prints the agent's log")
    parser.add_argument("--renew", default="", help="a command that makes the pod anew")
    parser.add_argument("--repeat", default="tests/e2e/hostile/run")
    options = parser.parse_args()
    if options.push:
        with open(options.program, "rb") as program:
            for name, image in made.images(program.read()).items():
                made.push(options.registry, f"hostile/{name}", "1", image)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    verbs = table(options.program)
    jobs = [name for name, row in verbs.items() if row[0] == "job"]
    neighbours = [name for name, row in verbs.items() if row[0] == "neighbour"]
    run = Run(options, verbs)
    triples = [tuple(triple.split(",")) for triple in options.triple] or \
        draw(options.seed, options.triples, run.images, jobs, neighbours, [tuple(one.split(",")) for one in options.prefer],
             lambda one: not options.pool or condor.can_run(verbs, run.images, one))
    try:
        passed, seconds = run.by_condor(triples) if options.pool else run.all(triples)
    except KeyboardInterrupt:
        os._exit(130)  # the jobs end with their pod
    for warm, waits in run.waits.items():
        if waits:
            waits.sort()
            print(f"   {'warm' if warm else 'new'} containers: {len(waits)}, median {waits[len(waits) // 2]:.2f} s, longest {waits[-1]:.2f} s")
    print(f"   looked {run.watch.looks} times at what {run.watch.processes} processes of jobs held")
    print(f"   {passed} triples of {len(triples)} in {seconds:.0f} s, {len(run.violations)} violations")
    cut_short = not run.violations and passed < len(triples)
    if cut_short:
        print(f"not ok: {len(triples) - passed} triples were not run: the {options.seconds:.0f} s were over")
    return 1 if run.violations or cut_short else 0


sys.exit(main())
