#!/usr/bin/env python3
"""What tests/e2e/agreement submits and advertises, and what it makes of the answers.

usage: agreement.py jobs SEED JOBS FOLDER REGISTRY   FOLDER/*.submit and jobs.json
       agreement.py query SITE DEMAND IMAGE MORE   what its provisioner asks of a schedd; DEMAND is the folder provisioner/demand
       agreement.py pods FOLDER     the sizes of pods that plan-SITE.json wants, made of the pilots in real.ads: pods.ads, pods.json
       agreement.py judge FOLDER    with queue and memory (condor_q's tables), counted-SITE and plan-SITE.json

The judge prints lines "ok: WHAT" and "not ok: WHAT", each "not ok" after what is wrong.
"""

import collections
import json
import math
import os
import random
import re
import sys

from judging import tell

OWNERS = ("alice", "bob")
SITES = ("a", "b", "c")  # tests/e2e/agreement has their settings
# As the settings of both have them.
CPUS, MEMORY, DISK = (1, 2, 4, 8), (4096, 8192, 16384), (8000000, 16000000, 32000000)

# --- the jobs --------------------------------------------------------------------------------------------------------
# Of each table one row a job: how often it comes, its name, and lines of the submit description. A line "+NAME" is an
# attribute as it stands.

IMAGE = {
    "container": (
        (40, "container", ["container_image = docker://registry.example/a:1"]),
        (2, "container", ["container_image = docker://registry.example/a:1", '+SingularityImage = strcat("docker://a:", TARGET.Arch)']),
    ),
    "docker": ((4, "docker", ["docker_image = registry.example/a:1"]), (1, "docker", ["docker_image = docker://a"])),
    "vanilla": (
        (3, "none", []),
        (15, "attribute", ['+ContainerImage = "docker://a"']),
        (12, "special", ['+SingularityImage = "docker://a"']),
        (4, "cvmfs", ['+SingularityImage = "/cvmfs/singularity.opensciencegrid.org/a/b:1"']),
        (2, "cvmfs", ['+SingularityImage = "/cvmfs/unpacked.cern.ch/registry.hub.docker.com/a/b:1"']),
        (2, "two", ['+SingularityImage = 5', '+ContainerImage = "docker://a"']),
        (1, "two", ['+SingularityImage = error', '+ContainerImage = "docker://a"']),
        (1, "two", ['+SingularityImage = "oras://b"', '+ContainerImage = "docker://a"']),
        (2, "expression", ['+SingularityImage = ifThenElse(true, "docker://a", undefined)']),
        (2, "expression", ['+SingularityImage = strcat("docker://", Owner)']),
        (2, "expression", ['+ContainerImage = ifThenElse(NumJobStarts > 0, "b", "docker://a")']),
        (2, "of the slot", ['+ContainerImage = strcat("docker://a:", TARGET.Arch)']),
        (1, "other", ['+ContainerImage = "oras://a"']),
        (1, "other", ['+ContainerImage = "image.sif"']),
        (1, "other", ['+ContainerImage = "/tmp/image.sif"']),
        (1, "other", ['+SingularityImage = "/cvmfs/other.example/a"']),
        (1, "other", ['+ContainerImage = "Docker://a"']),
        (1, "other", ['+ContainerImage = " docker://a"']),
        (1, "other", ['+ContainerImage = "a"']),
        (1, "other", ['+ContainerImage = 5']),
        (1, "none", ['+ContainerImage = undefined']),
        (1, "none", ['+SingularityImage = 5']),
        (1, "other", ['+ContainerImage = error']),
    ),
    # These never get to a pilot.
    "local": ((1, "local", []),),
    "scheduler": ((1, "scheduler", []),),
    "parallel": ((1, "parallel", ["machine_count = 1"]),),
    "java": ((1, "java", []),),
}
UNIVERSES = {"container": 45, "vanilla": 47, "docker": 4, "local": 1, "scheduler": 1, "parallel": 1, "java": 1}

NATIVE = (
    (88, "", []),
    (1, "refused", ['+PreCmd = "x"']),
    (1, "refused", ['+PreCmd = ""']),
    (1, "refused", ['+PostCmd = "x"']),
    (1, "refused", ['+ToolDaemonCmd = "x"']),
    (1, "refused", ['+TransferPlugins = "x=y"']),
    (1, "refused", ["+WantDocker = 1"]),
    (1, "refused", ["+UseParrot = true"]),
    (1, "refused", ["+SuspendJobAtExec = true"]),
    (1, "refused", ["+EncryptExecuteDirectory = true"]),
    (1, "refused", ["+StarterWaitForDebug = 1"]),
    (1, "refused", ['+JobStarterDebug = "D_FULLDEBUG"']),
    (1, "harmless", ["+PreCmd = undefined", "+WantDocker = false", "+StarterWaitForDebug = 0"]),
    (1, "harmless", ['+PreCmd = ifThenElse(NumJobStarts > 3, "x", undefined)']),
)
REQUEST_CPUS = (
    (40, "", "1"), (15, "", "2"), (10, "", "3"), (8, "", "4"), (5, "", "7"), (5, "", "8"), (3, "", "16"), (1, "", "100"),
    (2, "", "2 * 2"), (2, "", "ifThenElse(NumJobStarts > 0, 4, 2)"), (8, "zero", "0"), (2, "", "undefined"), (1, "", "-1"),
    (1, "", '"two"'), (1, "", "1/0"), (2, "", "1.5"),
)
REQUEST_MEMORY = (
    (15, "", "64"), (15, "", "2048"), (15, "", "4096"), (8, "", "4097"), (10, "", "6GB"), (8, "", "8192"), (6, "", "10000"),
    (5, "", "16384"), (3, "", "30000"), (1, "", "200000"), (4, "", "RequestCpus * 3000"), (2, "", "undefined"),
    (4, "", "ifThenElse(MemoryUsage =!= undefined, 2 * MemoryUsage, 2048)"),
    (4, "", "ifThenElse(LastHoldReasonCode =?= 34, 2 * MemoryProvisioned, 64)"), (1, "", '"lots"'),
    (2, "", "ifThenElse(Cpus > 2, 12000, 3000)"), (2, "", "3000 * TARGET.Cpus"), (2, "", "ifThenElse(TARGET.TotalSlotDisk > 9000000, 6000, 2000)"),
)
# Of these condor_q knows no value: of the pod that is made for the job, by its CPUs and disk. By what condor_q writes,
# without its blanks.
OF_SLOT = {
    "ifThenElse(Cpus>2,12000,3000)": lambda cpus, disk: 12000 if cpus > 2 else 3000,
    "3000*TARGET.Cpus": lambda cpus, disk: 3000 * cpus,
    "ifThenElse(TARGET.TotalSlotDisk>9000000,6000,2000)": lambda cpus, disk: 6000 if disk > 9000000 else 2000,
}
REQUEST_DISK = (
    (20, "", "1024"), (20, "", "102400"), (10, "", "7340032"), (8, "", "8000000"), (8, "", "8000001"), (6, "", "20000000"),
    (4, "", "40000000"), (3, "", "RequestCpus * 5000000"), (3, "", "ifThenElse(DiskUsage > 9000000, DiskUsage * 2, 9000000)"),
    (2, "", "undefined"), (1, "", '"much"'),
)
REQUEST_GPUS = (
    (80, "", []), (2, "", ["request_gpus = 0"]), (8, "", ["request_gpus = 1"]), (3, "", ["request_gpus = 2"]), (2, "", ["request_gpus = 1 + 1"]),
    (2, "", ["request_gpus = ifThenElse(RequestCpus > 2, 1, 0)"]), (2, "list", ["request_gpus = 1", '+RequestGPUTypes = "L40, A100"']),
    (1, "bad list", ["request_gpus = 1", '+RequestGPUTypes = "a b"']), (1, "list", ['+RequestGPUTypes = "a b"']),
    (2, "properties", ["request_gpus = 1", "require_gpus = Capability >= 7.0"]),
)
NAMESPACE = (
    (45, "", ['+RequestK8SNamespace = "default"']), (35, "", []), (8, "another", ['+RequestK8SNamespace = "other"']),
    (4, "pattern", ['+RequestK8SNamespace = ".*"']), (2, "pattern", ['+RequestK8SNamespace = "other|default"']),
    (2, "pattern", ['+RequestK8SNamespace = "def.+|x*"']), (2, "pattern", ['+RequestK8SNamespace = strcat("def", "ault?")']),
    (2, "pattern", ['+RequestK8SNamespace = "fault"']), (2, "another", ['+RequestK8SNamespace = "defaults"']),
    (1, "refused", ['+RequestK8SNamespace = ".*.*.*.*"']), (1, "refused", ['+RequestK8SNamespace = "(default)"']),
    (1, "refused", ['+RequestK8SNamespace = "[d]efault"']), (1, "refused", ['+RequestK8SNamespace = ""']), (4, "another", ['+RequestK8SNamespace = "Default"']), (4, "another", ["+RequestK8SNamespace = 5"]),
)
PROJECT = ((60, "", ['+ProjectName = "Sky"']), (30, "", []), (10, "", ['+ProjectName = "Closed"']))
REQUIREMENTS = (
    (70, "", ""), (4, "", 'TARGET.Arch == "X86_64"'), (4, "", "TARGET.HasSingularity"), (3, "", 'TARGET.K8SNamespace == "default"'),
    (3, "", "TARGET.Glidepod"), (2, "", 'MY.Owner == "alice" || MY.Owner == "bob"'), (3, "size", "TARGET.TotalSlotMemory > 6000"), (2, "size", "TARGET.Cpus >= 4"),
    (2, "unmet", 'TARGET.Machine == "nowhere.example"'), (2, "unmet", "TARGET.OpSysMajorVer == 7"), (2, "never", "TARGET.NoSuch"),
    (2, "never", 'HAS_SINGULARITY && OSGVO_OS_STRING == "RHEL 9"'), (2, "", "HAS_SINGULARITY =?= true && NoSuch =?= undefined"), (1, "never", 'TARGET.OpSys == "WINDOWS"'),
    (2, "unmet", 'stringListMember("osdf", TARGET.HasFileTransferPluginMethods)'), (2, "unmet", "TARGET.FileSystemDomain == MY.FileSystemDomain"), (1, "never", "false"), (1, "never", 'MY.ProjectName == "Land"'),
)
MORE = (
    (80, "", []), (4, "", ["priority = 5"]), (3, "", ["nice_user = true"]), (3, "", ["rank = TARGET.Memory"]),
    (2, "later", ["deferral_time = (time() + 100000)"]),
    (2, "list", ['+RequestLabels = "zone:a,other:b"']), (1, "bad list", ['+RequestLabels = "zone:-"']),
    (2, "list", ['+RequestDiskVolumes = "data:/data,secret:/x"']), (1, "bad list", ['+RequestDiskVolumes = "data:/bin"']),
    (2, "", ["+LastHoldReasonCode = 34", "+MemoryProvisioned = 5000"]), (2, "", ["+ResidentSetSize = 7500000", "+DiskUsage = 12000000"]),
)
HOLD = ((95, "", "false"), (5, "held", "true"))

# What a line sets back that an earlier job of the same file has set; attributes become undefined.
UNSET = {"nice_user": "false", "priority": "0", "rank": "0"}

# Of these condor_submit makes requirements, of an undefined one too: jobs with one have a file of their own.
ALONE = ("+Request", "request_gpus", "require_gpus")

HEADER = """executable = /bin/sleep
transfer_executable = false
arguments = 600
should_transfer_files = yes
"""
# The negotiator says of every job which pilots it would give it to, and gives it to none: CONCURRENCY_LIMIT_DEFAULT is 0.
LIMITS = 'concurrency_limits_expr = strcat("{}_", TARGET.K8SPodName)'
# These have their way with the environment's own pilot.
AT_WORK = """universe = container
container_image = docker://{registry}/demo/busybox:1
executable = /bin/{program}
transfer_executable = false
arguments = 3000
should_transfer_files = yes
request_cpus = 1
request_memory = 64
request_disk = 1024
requirements = TARGET.K8SPodName == "pilot"
leave_in_queue = true
+AgreementId = "{name}"
queue
"""


def jobs(seed, count, folder, registry):
    chance = random.Random(seed)
    made, files = {}, collections.defaultdict(list)
    for number in range(count - 6):
        name = f"j{number:04}"
        universe = chance.choices(list(UNIVERSES), list(UNIVERSES.values()))[0]
        made[name], lines = job(chance, universe, name)
        made[name].update(universe=universe)
        files[universe, tuple(sorted(key for key in map(key_of, lines) if key.startswith(ALONE)))].append(lines)
    for number, ((universe, _), blocks) in enumerate(files.items()):
        write(folder, f"{OWNERS[number % 2]}-{number}.submit", f"universe = {universe}\n" + HEADER + "".join(in_one_file(blocks)))
    text = ""
    for number in range(count - 6, count):
        program = "true" if number % 2 else "sleep"
        made[f"j{number:04}"] = {"universe": "container", "state": program}
        text += AT_WORK.format(registry=registry, program=program, name=f"j{number:04}")
    write(folder, "at-work.submit", text)
    write(folder, "jobs.json", json.dumps(made))


def job(chance, universe, name):
    """What was chosen for a job, by table, and its lines."""
    def choose(table):
        return chance.choices(table, [row[0] for row in table])[0][1:]

    told, lines = {}, [f'+AgreementId = "{name}"', LIMITS.format(name)]
    told["image"], more = choose(IMAGE[universe])
    lines += more
    if universe in ("container", "vanilla"):
        told["native"], more = choose(NATIVE)
        lines += more
    for table, key in ((REQUEST_CPUS, "cpus"), (REQUEST_MEMORY, "memory"), (REQUEST_DISK, "disk")):
        told[key], value = choose(table)
        lines.append(f"request_{key} = {value}")
    tables = [(NAMESPACE, "namespace"), (PROJECT, "project")]
    if universe in ("container", "vanilla", "docker"):
        tables += [(REQUEST_GPUS, "gpus"), (MORE, "more")]
    for table, key in tables:
        told[key], more = choose(table)
        lines += more
    told["requirements"], value = choose(REQUIREMENTS)
    told["required"] = value
    lines.append(f"requirements = {value}")
    told["state"], value = choose(HOLD)
    lines.append(f"hold = {value}")
    return told, lines


def key_of(line):
    return line.split(" = ")[0]


def in_one_file(blocks):
    """The jobs of a file, those first that set least: what one sets is set for all that follow."""
    seen = []
    for lines in sorted(blocks, key=len):
        keys = [key_of(line) for line in lines]
        again = [f"{key} = " + ("undefined" if key[0] == "+" else UNSET.get(key, "")) for key in seen if key not in keys]
        seen += [key for key in keys if key not in seen]
        yield "\n".join(again + lines) + "\nqueue\n"


# --- the pods --------------------------------------------------------------------------------------------------------


def pods(folder):
    """A pilot's ad for each size that a site wants a pod of, and for the size that each real pilot has."""
    real = {ad["K8SPodName"].strip('"'): ad for ad in ads(read(folder, "real.ads"))}
    all_pods, text = {}, ""
    for name, ad in real.items():
        all_pods[name] = {"site": name[0], "real": True, "shape": shape_of(ad)}
    for site in SITES:
        wanted = {shape_of_group(d["group"]) for d in plan(folder, site)["decisions"] if d["idle"] > 0}
        wanted |= {tuple(pod["shape"]) for pod in all_pods.values() if pod["site"] == site}
        for number, shape in enumerate(sorted(wanted)):
            name = f"{site}{number}"
            all_pods[name] = {"site": site, "real": False, "shape": shape}
            text += resized(real[site + ("gpu" if shape[3] else "cpu")], name, shape)
    write(folder, "pods.ads", text)
    write(folder, "pods.json", json.dumps(all_pods))


def ads(text):
    for block in text.split("\n\n"):
        ad = dict(line.split(" = ", 1) for line in block.splitlines() if " = " in line)
        if ad:
            yield ad


def shape_of(ad):
    return [int(ad["TotalSlotCpus"]), int(ad["TotalSlotMemory"]), int(float(ad["TotalSlotDisk"])) - SPARE, int(ad.get("TotalSlotGPUS", 0))]


# What the pilot adds to its pod's disk (images/pilot/config.d/30-resources.config), for the two payload containers of each.
SPARE = 2 * 2048


def shape_of_group(group):
    return (group["cpus"], group["memory_mb"], group["disk_kb"], group["gpus"])


def resized(ad, name, shape):
    """The ad that a pilot would have in a pod of another size."""
    changed = dict(ad, Name=f'"slot1@{name}"', K8SPodName=f'"{name}"')
    for resource, size in zip(("Cpus", "Memory", "Disk", "GPUS"), (shape[0], shape[1], shape[2] + SPARE, shape[3])):
        for attribute in (resource, f"Total{resource}", f"TotalSlot{resource}"):
            if attribute in changed:
                changed[attribute] = str(size)
    return "".join(f"{key} = {value}\n" for key, value in changed.items()) + "\n"


# --- the query -------------------------------------------------------------------------------------------------------


def query(site, demand, image, more):
    # The clauses of container_jobs(), each of one or more string literals.
    clauses = re.findall(r"\{JobRule::\w+,(.*?)\},\n", read(demand, "contract.cpp"), re.S)
    literals = [re.findall(r'R"(x?)\((.*)\)\1"|"([^"]*)"', clause) for clause in clauses]
    taken = " && ".join("".join(raw or plain for _, raw, plain in parts) for parts in literals)
    parts = ["JobStatus == 1", "JobUniverse == 5", taken.replace("GlidepodPilotJobs", "False").replace("GlidepodDefaultImage", f'"{image}"' if image else "undefined")]
    parts += ['RequestK8SNamespace =?= "default"'] if site == "b" else []
    if site == "c":
        patterns = re.search('k_namespace_patterns =\\s+"(.*)";', read(demand, "name_space.hpp"))[1]
        parts.append(f'ifThenElse(regexp("{patterns}", RequestK8SNamespace) =?= true, regexp(strcat("^(?:", RequestK8SNamespace, ")$"), "default"), false) =?= true')
    parts += [more] if more else []
    print(" && ".join(f"({part})" for part in parts))


# --- the judge -------------------------------------------------------------------------------------------------------

# Where the query and the negotiator may differ: what the query does, of which jobs, and why. A class that no job is in
# fails, so that none outlives its reason.
CLASSES = (
    ("counted", "requirements that no pilot meets", lambda j: j["requirements"] == "unmet",
     "of these attributes the provisioner knows no values; they are the negotiator's to compare"),
    ("counted", "requirements that no pilot can meet", lambda j: j["requirements"] == "never",
     "by the query alone; the provisioner leaves them out, which the plan shows (`judge_plan`)"),
    ("counted", "requirements that a pod of its own size does not meet", lambda j: j["requirements"] == "size",
     "the same"),
    ("counted", "jobs for later", lambda j: j.get("more") == "later",
     "the same: condor_submit writes the time into the requirements"),
    ("counted", "requests without a value", lambda j: "undefined" in j["request"][:3],
     "PRP's default counts, and HTCondor's startd takes no job that asks for no number"),
    ("passed over", "requests that are no number", lambda j: shape_of_job(j["request"], j) is None,
     "no size of a pod follows from them; the provisioner says so (bad ads)"),
    ("counted", "labels, volumes or types of GPUs that they ask for", lambda j: "list" in (j.get("gpus"), j.get("more")),
     "the same: condor_submit writes regexp(RequestLabels, TARGET.Labels) and so on, and the settings allow a part of their lists"),
    ("counted", "another namespace", lambda j: j["namespace"] == "another",
     "the same: condor_submit writes regexp(RequestK8SNamespace, TARGET.K8SNamespace), whatever the settings match"),
    # Also by what the first job of its cluster says, where it says nothing itself.
    ("counted", "no CPU", lambda j: j["request"][0] == "0",
     "they fill no pod (least_fill; `provisioner why` says so)"),
    ("passed over", "images that depend on the slot", lambda j: j["image"] == "of the slot",
     "the query knows no slot"),
)


def judge(folder):
    expected = json.loads(read(folder, "jobs.json"))
    all_pods = json.loads(read(folder, "pods.json"))
    queue = {}
    for line in read(folder, "queue").splitlines():
        name, status, owner, cpus, memory, disk, gpus, reason = line.split("\t")
        queue[name] = {"status": status, "owner": owner, "request": (cpus, memory, disk, gpus), "pods": set(re.findall(name + r"_(\w+)", reason)), "reason": reason}
    for line in read(folder, "memory").splitlines():
        name, memory = line.split("\t")
        queue[name]["request"] = of_slot(queue[name]["request"], memory.replace(" ", ""))
    tell(f"all {len(expected)} jobs are in the queue", sorted(set(expected) ^ set(queue)))
    states = collections.Counter(job["status"] for job in queue.values())
    tell("of them some run, are held and have ended", [state for state in ("1", "2", "4", "5") if not states[state]])
    judge_pods(all_pods, queue)
    used = collections.Counter()
    for site in SITES:
        judge_site(folder, site, expected, queue, all_pods, used)
    tell("each class of differences has jobs", [name for _, name, _, _ in CLASSES if not used[name]])


def judge_pods(all_pods, queue):
    """A resized ad is worth no less than the pilot of that size."""
    wrong = []
    for name, pod in all_pods.items():
        if not pod["real"]:
            continue
        for other, made in all_pods.items():
            if made["real"] or (made["site"], made["shape"]) != (pod["site"], pod["shape"]):
                continue
            differ = [job for job, ad in queue.items() if (name in ad["pods"]) != (other in ad["pods"])]
            wrong += [f"{job}: {name} and {other}" for job in differ]
            print(f"   {name} {pod['shape']} would take {sum(name in ad['pods'] for ad in queue.values())} jobs")
    tell("an ad made for a pod's size gets the answers of a pilot of that size", wrong)


def judge_site(folder, site, expected, queue, all_pods, used):
    counted = set(read(folder, f"counted-{site}").split())
    shapes = {name: shape_of_job(queue[name]["request"], expected[name]) for name in queue}
    pods_of_site = {name: tuple(pod["shape"]) for name, pod in all_pods.items() if pod["site"] == site and not pod["real"]}
    judge_plan(folder, site, counted, shapes, queue, expected, pods_of_site)
    unexplained, found = [], collections.Counter()
    agreed = 0
    for name, job in expected.items():
        taken_by = {pods_of_site[pod] for pod in queue[name]["pods"] if pod in pods_of_site}
        counts = name in counted and shapes[name] is not None
        taken = shapes[name] in taken_by if counts else bool(taken_by)
        if counts == taken:
            agreed += counts
            continue
        what = "counted" if counts else "passed over"
        job = dict(job, request=queue[name]["request"])
        names = [why for which, why, of_class, _ in CLASSES if which == what and "requirements" in job and of_class(job)]
        if names:
            found[names[0]] += 1
        else:
            unexplained.append(f"{name} is {what}, of {queue[name]['request']}, taken by {sorted(taken_by)}: {job}; "
                               f"the negotiator: {queue[name]['reason'][:200]}")
    print(f"   site {site}: {agreed} jobs are counted, and a pilot in the pod that is made for each would take it")
    for which, why, _, reason in CLASSES:
        if found[why]:
            print(f"   site {site}: {found[why]} jobs with {why} are {which}: {reason}")
    used.update(found)
    tell(f"site {site}: what the query counts is what pilots would take, and each difference is explained", unexplained)


def judge_plan(folder, site, counted, shapes, queue, expected, pods_of_site):
    """The provisioner's own figures, by size and owner: of what the query finds it may leave out what no pilot meets, must
    leave out what none can meet, and has to count all that the negotiator would give to the pod made for it."""
    want, got, never, taken = (collections.Counter() for _ in range(4))
    for name in counted:
        if not shapes[name]:
            continue
        key = shapes[name], queue[name]["owner"]
        want[key] += 1
        never[key] += never_met(expected[name], shapes[name])
        taken[key] += shapes[name] in {pods_of_site[pod] for pod in queue[name]["pods"] if pod in pods_of_site}
    answer = plan(folder, site)
    for decision in answer["decisions"]:
        for owner, idle in decision["owners"].items():
            got[shape_of_group(decision["group"]), owner] += idle
    left = sum(entry["idle"] for entry in answer.get("unmet", []))
    wrong = [f"{key}: {got[key]} in the plan; {want[key]} in the queue, {never[key]} of them never met, {taken[key]} taken"
             for key in sorted(want.keys() | got.keys()) if not taken[key] <= got[key] <= want[key] - never[key]]
    if sum(got.values()) + left != sum(want.values()):
        wrong.append(f"{sum(got.values())} counted and {left} left out, of {sum(want.values())}")
    print(f"   site {site}: {len(counted)} jobs, {sum(got.values())} counted, in {len(got)} sizes and owners; {left} left out, {sum(never.values())} expected")
    tell(f"site {site}: the plan has these jobs, by size and owner, without those that no pilot can meet", wrong)


def never_met(job, shape):
    """Whether the provisioner has to know that no pilot in a pod of the job's size meets what it requires."""
    required = job.get("required", "")
    too_small = ("TotalSlotMemory > 6000" in required and shape[1] <= 6000) or ("TARGET.Cpus >= 4" in required and shape[0] < 4)
    return job.get("requirements") == "never" or too_small


def of_slot(request, memory):
    """The request, with what its memory is in the pod that is made for it, where that depends on the slot."""
    size = shape_of_job(request, {}) if memory in OF_SLOT else None
    return (request[0], str(OF_SLOT[memory](size[0], size[2])), *request[2:]) if size else request


def shape_of_job(request, job):
    """The size of its pod (provisioner/demand), or None where the provisioner has a bad ad in it."""
    numbers = []
    for text in request:
        try:
            numbers.append(None if text == "undefined" else math.ceil(float(text)))
        except ValueError:
            return None
    if any(number is not None and not 0 <= number <= 1e12 for number in numbers) or "bad list" in (job.get("gpus"), job.get("more")):
        return None
    cpus, memory, disk, gpus = numbers
    return (bucket(max(cpus or 1, 1), CPUS), bucket(max(memory or 0, 4096), MEMORY), bucket(max(disk or 0, 8000000), DISK), gpus or 0)


def bucket(size, sizes):
    return next((one for one in sizes if one >= size), math.ceil(size / sizes[-1]) * sizes[-1])


def plan(folder, site):
    return json.loads(read(folder, f"plan-{site}.json"))


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def read(folder, name):
    with open(os.path.join(folder, name), errors="replace") as file:
        return file.read()


if sys.argv[1] == "jobs":
    jobs(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
elif sys.argv[1] == "query":
    query(*sys.argv[2:])
elif sys.argv[1] == "pods":
    pods(sys.argv[2])
else:
    judge(sys.argv[2])
