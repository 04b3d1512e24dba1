"""The cases of tests/world: which there are, what goes into the pool for them, and whether they ended as expected.

Usage: cases.py list CORPUS WHERE HTCONDOR      names of those that apply there ("podhost" or "kubelet"; "23.9")
       cases.py slow CORPUS WHERE HTCONDOR      those of them that take minutes
       cases.py prepare CORPUS HOME REGISTRY DIGESTS PROGRAMS NAME...
                                                folders for the user's home; DIGESTS: what images.py printed
       cases.py undecided|judge|idle CORPUS WHERE GOT NAME...
                                                how many have not ended, of those that are to; lines "ok: ..."; jobs to ask about

GOT has queue.json, history.json, clusters (lines NAME CLUSTER, or NAME refused), the home's files in home/NAME, and what
`provisioner why` says of a job in why/NAME.
"""

import json
import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
KEYS = ("source", "expect", "expect podhost", "expect kubelet", "expect containerd 2", "output", "error", "file", "processes", "where", "since", "mode", "push", "judge", "unlike apptainer", "not yet", "slow",
        "reference", "called", "tag", "command", "send", "shell", "own", "arguments",
        "kubernetes", "feature", "manifest", "webhook", "deleter", "containerd", "says", "loaded", "collected", "image", "hook", "ends")
ENDS = ("exit", "signal", "held", "idle", "told", "fails", "runs", "refused", "pilot ends")
SIZE = "request_cpus = 1\nrequest_memory = 64 MB\nrequest_disk = 100 MB\n"


class Case:
    def __init__(self, corpus, name):
        self.corpus, self.name, self.folder = corpus, name, HERE / corpus / name
        self.keys = {}
        for line in (self.folder / "case").read_text().splitlines():
            if not line or line.startswith("#"):
                continue
            key, _, value = line.partition(" = ")
            if key.strip() not in KEYS:
                sys.exit(f"{self.folder}/case: no such key: {key}")
            self.keys.setdefault(key.strip(), []).append(value)
        for key in ("source", "expect"):
            if key not in self.keys:
                sys.exit(f"{self.folder}/case: no {key}")
        if not self.get("expect").startswith(ENDS):
            sys.exit(f"{self.folder}/case: what end is that: {self.get('expect')}")

    def get(self, key, default=""):
        return self.keys.get(key, [default])[0]

    def all(self, key):
        return self.keys.get(key, [])

    def expected(self, where):
        newer = self.get("expect containerd 2") if where == "kubelet" and os.environ.get("WORLD_CONTAINERD", "").startswith("2.") else ""
        return newer or self.get(f"expect {where}") or self.get("expect")

    def applies(self, where, condor):
        since = self.get("since")
        if where == "apptainer" and (self.expected(where).startswith("idle") or self.get("judge") == "no"):
            return False
        return (where in self.get("where", "podhost kubelet").split() or where == "apptainer") and \
            (not since or tuple(map(int, condor.split("."))) >= tuple(map(int, since.split("."))))

    def runs_itself(self):
        return (self.folder / "run").exists()


def submit_file(case, registry, digests):
    lines = "".join(f"{line}\n" for line in (
        "universe = container",
        "container_image = " + case.get("reference", f"docker://REG/world/{case.name}:1").replace("REG/", registry + "/").replace(
            "DIGEST", digests.get(case.name, "")),
        "should_transfer_files = YES", "log = job.log", "output = job.out", "error = job.err", '+WorldCorpus = "images"'))
    if case.get("command"):
        lines += f"executable = {case.get('command')}\ntransfer_executable = false\n"
    elif case.get("shell"):
        lines += "executable = /bin/sh\ntransfer_executable = false\narguments = \"-c '" + case.get("shell").replace('"', '""') + "'\"\n"
    elif not case.get("own"):
        lines += f"executable = {case.get('send', 'look')}\n"
    if case.get("arguments"):
        lines += f"arguments = {case.get('arguments')}\n"
    return lines + SIZE + "queue\n"


def prepare(corpus, home, registry, digests, programs, names):
    known = dict(line.split()[:2] for line in pathlib.Path(digests).read_text().splitlines())
    for name in names:
        case, to = Case(corpus, name), pathlib.Path(home) / name
        if corpus == "images":
            to.mkdir(parents=True)
            (to / "job.sub").write_text(submit_file(case, registry, known))
            if not (case.get("command") or case.get("shell") or case.get("own")):
                shutil.copy(pathlib.Path(programs) / case.get("send", "look"), to)
            continue
        shutil.copytree(case.folder, to)
        for path in to.rglob("*"):
            if path.is_file():
                path.write_bytes(path.read_bytes().replace(b"REG/", registry.encode() + b"/"))
        for value in case.all("mode"):
            path, mode = value.split()
            (to / path).chmod(int(mode, 8))


class Got:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.clusters = dict(line.split(None, 1) for line in self.text("clusters").splitlines() if " " in line)
        self.ads = {}
        for file in ("history.json", "queue.json"):  # who is in both is leaving the queue
            for ad in json.loads(self.text(file) or "[]"):
                self.ads.setdefault(str(ad.get("ClusterId")), {})[ad.get("ProcId")] = ad

    def text(self, path):
        path = self.folder / path
        return path.read_text(errors="replace") if path.is_file() else ""

    def jobs(self, case):
        return [ad for _, ad in sorted(self.ads.get(self.clusters.get(case.name, ""), {}).items())]

    def file_of(self, case, ad, attribute):
        value = ad.get(attribute) or ""
        return self.text(f"home/{case.name}/" + value.removeprefix("./")) if value and not value.startswith("/dev") else ""

    def end(self, case):
        """One word and more for each job: "exit 3", "held WHY", "idle", "runs"."""
        if case.runs_itself():
            end = self.text(f"home/{case.name}/run.end").strip()
            return [f"exit {end}" if end else "runs"]
        ends = []
        for ad in self.jobs(case):
            status = ad.get("JobStatus")
            if status == 4:
                ends.append(f"signal {ad.get('ExitSignal')}" if ad.get("ExitBySignal") else f"exit {ad.get('ExitCode')}")
            else:
                ends.append({1: "idle", 2: "runs", 3: "removed", 5: f"held {ad.get('HoldReason')}", 6: "comes back"}.get(status, f"status {status}"))
        return ends or [f"refused {self.text(f'home/{case.name}/submit.err').strip()}" if self.clusters.get(case.name) == "refused" else "nothing"]


def log_of(got, case):
    return "".join(path.read_text(errors="replace") for path in sorted((got.folder / "home" / case.name).glob("*.log")))


def has_ended(got, case, expected):
    """Whether waiting for longer would show nothing else."""
    kind, _, words = expected.partition(" ")
    ends = got.end(case)
    if kind == "idle" or case.get("not yet"):
        return True
    if kind == "told" and words in log_of(got, case):
        return True
    wanted = int(case.get("processes", "1"))
    return len(ends) >= wanted and all(end.split()[0] in ("exit", "signal", "removed", "held", "refused") for end in ends)


def misses(got, case, expected, where):
    """What is not as expected, in words; nothing where all is."""
    kind, _, words = expected.partition(" ")
    ends, ads, wrong = got.end(case), got.jobs(case), []
    if not case.runs_itself() and kind != "refused" and len(ends) != int(case.get("processes", "1")):
        wrong.append(f"{len(ends)} jobs")
    if kind in ("exit", "signal"):
        right = all(end == expected for end in ends)
    elif kind == "idle":
        # On a kubelet nobody is asked: what `why` says of a job is the provisioner's alone.
        right = all(end == "idle" for end in ends) and (where == "kubelet" or words in got.text(f"why/{case.name}"))
    elif kind == "told":
        right = words in log_of(got, case) or all(end.startswith("held") and words in end for end in ends)
    elif kind == "fails":
        right = all((end.startswith("held") and words in end) or
                    (end.startswith("exit ") and end != "exit 0" and words.lower() in got.file_of(case, ad, "Err").lower())
                    for end, ad in zip(ends, ads)) and bool(ads)
    else:
        right = all(end.startswith(kind) and words in end for end in ends)
    if not right:
        wrong.append("got " + "; ".join(sorted(set(ends))))
        if kind == "idle":
            wrong.append("why: " + " ".join(got.text(f"why/{case.name}").split())[:300])
    if not right and kind in ("fails", "exit") and ads:
        wrong.append("its error: " + " ".join(got.file_of(case, ads[0], "Err").split())[-200:])
    output = got.text(f"home/{case.name}/run.out") if case.runs_itself() else got.file_of(case, ads[0], "Out") if ads else ""
    wrong += [f"no \"{one}\" in its output: {output.strip()[-200:]!r}" for one in case.all("output") if one not in output]
    wrong += [f"no \"{one}\" in its error" for one in case.all("error") if not ads or one not in got.file_of(case, ads[0], "Err")]
    for one in case.all("file"):
        path, _, text = one.partition(" ")
        if text not in got.text(f"home/{case.name}/{path}"):
            wrong.append(f"{path}: {got.text(f'home/{case.name}/{path}').strip()[-100:]!r}")
    return wrong


def main():
    verb, corpus = sys.argv[1:3]
    if verb in ("list", "slow"):
        for folder in sorted((HERE / corpus).iterdir()):
            case = Case(corpus, folder.name)
            if case.applies(*sys.argv[3:5]) and (verb == "list" or case.get("slow")):
                print(folder.name)
    elif verb == "prepare":
        prepare(corpus, *sys.argv[3:7], sys.argv[7:])
    else:
        where, got = sys.argv[3], Got(sys.argv[4])
        cases = [Case(corpus, name) for name in sys.argv[5:]]
        if verb == "undecided":
            print(" ".join(case.name for case in cases if not has_ended(got, case, case.expected(where))))
        elif verb == "idle":
            for case in cases:
                if case.expected(where).startswith("idle") and got.jobs(case):
                    print(case.name, got.clusters[case.name])
        else:
            for case in cases:
                wrong = misses(got, case, case.expected(where), where)
                excuse = "unlike apptainer" if where == "apptainer" else "not yet"
                later = case.get(excuse)
                for line in wrong:
                    print("   " + line.replace("\n", " "))
                what = f"{corpus}/{case.name}: {case.expected(where)}"
                if later and wrong:
                    print(f"ok: {what}: {excuse}: {later}")
                elif later:
                    print(f"not ok: {what}: it is so: take `{excuse}` away")
                else:
                    print(f"{'not ok' if wrong else 'ok'}: {what}")


main()
