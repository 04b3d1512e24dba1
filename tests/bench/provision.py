"""Two small tools for tests/bench/provision, run inside the pool's container.

measure COMMAND...   runs it and prints "WALL CPU PEAK PROGRAMS SCHEDD_CPU RESULT": seconds; MiB that
                     are resident, shared or not, looked at every 10 ms: the peak of the whole
                     process tree, which depends on what runs at the same time, and the sum of
                     its programs' own peaks, which does not; and its last line of output or,
                     of the provisioner's JSON, what it saw. On stderr, whose the memory was
prp NAMESPACE APP    what PRP's provisioner does to see both sides: the ads of all idle jobs by
                     the bindings' query with its projection, and the full list of pods
"""
import json
import os
import subprocess
import sys
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")


def schedd_cpu():
    """Processor seconds of the schedd and of the children it has reaped."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                name, fields = file.read().rsplit(")", 1)
        except OSError:
            continue
        if name.endswith("(condor_schedd"):
            return sum(map(int, fields.split()[11:15])) / TICKS
    return 0.0


def tree_rss(root):
    """What is resident in a process and in each of its descendants, as (kilobytes, name)."""
    parents, sizes, names, programs = {}, {}, {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                name, rest = file.read().rsplit(")", 1)
            programs[int(pid)] = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        fields = rest.split()
        names[int(pid)] = name.split("(", 1)[1]
        parents[int(pid)] = int(fields[1])
        sizes[int(pid)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") // 1024
    tree = []
    for pid in sizes:
        above = pid
        while above not in (root, 0):
            above = parents.get(above, 0)
        # Between fork and exec it has its parent's memory, which is there once.
        copied = pid != root and programs[pid] == programs.get(parents[pid])
        if above == root and not copied:
            tree.append((sizes[pid], names[pid]))
    return tree


def measure(command):
    before = schedd_cpu()
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        peak, own, over = [], {}, threading.Event()

        def watch():
            nonlocal peak
            while not over.wait(0.01):
                tree = tree_rss(child.pid)
                peak = max(peak, tree, key=lambda tree: sum(size for size, _ in tree))
                for size, name in tree:
                    own[name] = max(own.get(name, 0), size)

        watcher = threading.Thread(target=watch)
        watcher.start()
        output = child.stdout.read()
        over.set()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - began
        watcher.join()
    if child.returncode != 0:
        sys.exit(f"{command[0]} ended with {child.returncode}: {output[:2000].decode()}")
    # What the largest process had at its peak is known exactly.
    memory = max(sum(size for size, _ in peak), usage.ru_maxrss) / 1024
    largest = max(own, key=own.get)
    own[largest] = max(own[largest], usage.ru_maxrss)
    parts = ", ".join(f"{name} {size / 1024:.1f}" for size, name in sorted(peak, reverse=True))
    each = ", ".join(f"{name} {size / 1024:.1f}" for name, size in sorted(own.items()))
    print(f"{memory:.1f} MiB: {parts}; each at its own peak: {each}", file=sys.stderr)
    result = output.decode().strip()
    if result.startswith("{"):
        report = json.loads(result)
        decisions = report["decisions"]
        pods = sum(sum(d["pods"].values()) for d in decisions)
        result = f"jobs={sum(d['idle'] for d in decisions)},pods={pods}"
    print(f"{wall:.2f} {usage.ru_utime + usage.ru_stime:.2f} {memory:.1f} {sum(own.values()) / 1024:.1f} {schedd_cpu() - before:.2f} {result}")


def prp(namespace, app):
    import classad  # noqa: F401  as PRP's own program imports it
    import htcondor
    import kubernetes

    projection = ["ClusterId", "ProcId", "JobStatus", "RequestK8SNamespace", "RequestCpus", "RequestMemory",
                  "RequestDisk", "RequestDiskVolumes", "RequestGPUs", "RequestGPUTypes", "RequestLabels"]
    jobs = []
    for ad in htcondor.Collector().query(ad_type=htcondor.AdTypes.Schedd,
                                         projection=["Name", "AuthenticatedIdentity", "MyAddress", "AddressV1", "Machine"]):
        for job in htcondor.Schedd(ad).xquery("(JobStatus=?=1)", projection):
            jobs.append({key: str(job.eval(key)) for key in job.keys()} | {"ScheddName": ad["Name"]})
    slots = htcondor.Collector().query(ad_type=htcondor.AdTypes.Startd, projection=["Name", "State", "K8SPodName"],
                                       constraint=f'K8SProvisionerName=?="{app}"')
    kubernetes.config.load_incluster_config()
    pods = kubernetes.client.CoreV1Api().list_namespaced_pod(
        namespace=namespace, label_selector=f"prp-htcondor-portal=wn,k8s-app={app}").items
    groups = {}
    for job in jobs:
        key = ";".join(job.get(name, "") for name in projection[4:])
        groups.setdefault(key, []).append(job)
    states = {}
    for pod in pods:
        states.setdefault(pod.status.phase, []).append(pod.metadata.name)
    del slots
    print(f"jobs={sum(map(len, groups.values()))},pods={sum(map(len, states.values()))}")


if sys.argv[1] == "measure":
    measure(sys.argv[2:])
else:
    prp(sys.argv[2], sys.argv[3])
