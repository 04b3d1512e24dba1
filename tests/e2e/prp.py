#!/usr/bin/env python3
"""What tests/e2e/prp runs in the pool's pod: PRP's event loop and our provisioner, on the same queue and the same pods.

usage: prp.py --submit   the jobs
       prp.py BRANCH     with FOLDER/BRANCH/prp_provisioner, PRP's own code, and FOLDER/prp.md, our docs/prp.md

Prints lines "ok: WHAT" and "not ok: WHAT", each "not ok" after what is wrong.
"""

import json
import os
import subprocess
import sys
import time

import kubernetes

from judging import tell
from prp_cases import BAD, CONFIGS, FOLDER, NAMESPACE, ROWS, WHOSE, Size, add_published, app_name, section, trusted
from prp_judge import Judge, by_row, counts, size_of

CORE = BATCH = None

# --- the pool and the pods --------------------------------------------------------------------------------------------------------


def submit(lines, count=1, owner="alice"):
    text = "\n".join(["executable = /bin/sleep", "arguments = 1", "transfer_executable = false", *lines, f"queue {count}"])
    command = ["setpriv", "--reuid", owner, "--regid", owner, "--init-groups", "env", "-C", f"/home/{owner}", f"HOME=/home/{owner}",
               "condor_submit", "-terse", "-"]
    return subprocess.run(command, input=text, text=True, check=True, capture_output=True).stdout.split(".")[0]


def pods(config):
    return {pod["metadata"]["name"]: pod for pod in raw(CORE.list_namespaced_pod, NAMESPACE, label_selector=f"k8s-app={app_name(config)}")["items"]}


def raw(call, *args, **kwargs):
    """The answer as the API has it, not as the client's models do."""
    return json.loads(call(*args, _preload_content=False, **kwargs).data)


def remove(config, names):
    for job in raw(BATCH.list_namespaced_job, NAMESPACE, label_selector=f"k8s-app={app_name(config)}")["items"]:
        owned = [pod for pod in pods(config).values() if any(o["uid"] == job["metadata"]["uid"] for o in pod["metadata"].get("ownerReferences", []))]
        if all(pod["metadata"]["name"] in names for pod in owned):
            BATCH.delete_namespaced_job(job["metadata"]["name"], NAMESPACE, propagation_policy="Background", grace_period_seconds=0)
    for name in names & pods(config).keys():
        try:
            CORE.delete_namespaced_pod(name, NAMESPACE, grace_period_seconds=0)
        except kubernetes.client.ApiException as failure:
            if failure.status != 404:
                raise
    wait_until("the end of pods", lambda: not names & pods(config).keys())


def wait_until(what, holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.2)


def set_phase(name, phase):
    CORE.patch_namespaced_pod_status(name, NAMESPACE, {"status": {"phase": phase}})


def advertise(config, states):
    """An ad for each pod of this state."""
    text, domain = "", section(config, "k8s").get("k8s_domain", "optiputer.net")
    for name, state in states.items():
        text += f"""MyType = "Machine"
Name = "slot1@{name}"
Machine = "{name}"
MyAddress = "<10.0.0.1:9618?sock={name}>"
State = "{state}"
Activity = "{'Busy' if state == 'Claimed' else 'Idle'}"
K8SPodName = "{name}"
K8SNamespace = "{NAMESPACE}"
K8SDomain = "{domain}"
K8SProvisionerType = "PRPHTCondorProvisioner"
K8SProvisionerName = "{app_name(config)}"

"""
    send("UPDATE_STARTD_AD", text)
    wait_until("the ads", lambda: ads_there() == len(states))


def forget_ads():
    send("INVALIDATE_STARTD_ADS", 'MyType = "Query"\nTargetType = "Machine"\nRequirements = true\n')
    wait_until("no ads", lambda: ads_there() == 0)


def send(command, text):
    with open("/tmp/ads", "w") as file:
        file.write(text)
    subprocess.run(["condor_advertise", "-tcp", "-multiple", command, "/tmp/ads"], check=True, capture_output=True,
                   env=dict(os.environ, _CONDOR_SEC_TOKEN_DIRECTORY="/var/lib/glidepod/tokens/pilot"))


def ads_there():
    return len(subprocess.run(["condor_status", "-af", "Name"], check=True, capture_output=True, text=True).stdout.split())


# --- the two ---------------------------------------------------------------------------------------------------------


def theirs(config):
    """One iteration of PRP's event loop, put together as provisioner_main.py of sfiligoi/prp-osg-pool does; PRP's own of 2023 ends
    by names that it does not define, and trusts every schedd."""
    from prp_provisioner import event_loop, provisioner_htcondor, provisioner_k8s, provisioner_logging

    k8s_section, htcondor_section = section(config, "k8s"), section(config, "htcondor")
    k8s_config = provisioner_k8s.ProvisionerK8SConfig(NAMESPACE)
    k8s_config.parse(k8s_section)
    htcondor_config = provisioner_htcondor.ProvisionerHTCConfig(NAMESPACE)
    htcondor_config.parse(htcondor_section)
    log = provisioner_logging.ProvisionerFileLogging("/tmp/prp.log", dated=False, want_log_debug=True)
    k8s = provisioner_k8s.ProvisionerK8S(k8s_config)
    k8s.authenticate()
    asked = []
    submit_job = k8s.submit

    def submit_and_note(attrs, n_pods=1):
        name = submit_job(attrs, n_pods)
        asked.append(n_pods)
        return name

    k8s.submit = submit_and_note
    before = pods(config).keys()
    loop = event_loop.ProvisionerEventLoop(
        log, provisioner_htcondor.ProvisionerSchedd(log, {trusted(config): ".*"}, htcondor_config),
        provisioner_htcondor.ProvisionerCollector(log, ".*", htcondor_config), k8s,
        int(k8s_section.get("max_pods_per_cluster", "20")), int(k8s_section.get("max_submit_pods_per_cluster", "1000")))
    loop.one_iteration()
    wait_until("the pods of PRP's jobs", lambda: len(pods(config).keys() - before) == sum(asked))
    time.sleep(1.1)  # the next one's jobs have the second in their names
    return {name: pod for name, pod in pods(config).items() if name not in before}


def ours(config):
    """One cycle of our provisioner, which remembers nothing of the one before."""
    arguments = []
    for number, text in enumerate([*CONFIGS[config], "[glidepod]\nstatus_file=\n"]):
        with open(f"/tmp/provisioner-{number}.conf", "w") as file:
            file.write(text)
        arguments += ["--config", file.name]
    before, line = pods(config).keys(), ""
    with subprocess.Popen(["provisioner", "run", *arguments], stderr=subprocess.PIPE, text=True) as process, open("/tmp/provisioner.log", "a") as log:
        for line in process.stderr:
            log.write(line)
            if "event=cycle " in line:
                process.terminate()
    if process.returncode != 0:
        raise RuntimeError(f"the provisioner ended with {process.returncode}: {line}")
    return {name: pod for name, pod in pods(config).items() if name not in before}


# --- the steps -------------------------------------------------------------------------------------------------------


def burst_and_again(judge, config, keep):
    """Nothing there; then, with the pods of one of them waiting."""
    first, second = (ours, theirs) if keep is theirs else (theirs, ours)
    made = {first: first(config)}
    remove(config, made[first].keys())
    made[second] = second(config)
    judge.step("burst", config, made[theirs], made[ours], by_row(config, burst=True))
    kept = made[keep]
    made = {}
    for who in (theirs, ours):
        made[who] = who(config)
        remove(config, made[who].keys())
    judge.step(f"with {'PRP' if keep is theirs else 'our'} pods waiting", config, made[theirs], made[ours], by_row(config, burst=False))
    return kept


def again(judge, what, config, explain=None):
    made = {}
    for who in (theirs, ours):
        made[who] = who(config)
        remove(config, made[who].keys())
    by_rows = by_row(config, burst=False)
    judge.step(what, config, made[theirs], made[ours], lambda *args: (explain(*args) if explain else None) or by_rows(*args))
    return made


def of_size(kept, memory):
    return sorted(name for name, pod in kept.items() if size_of(pod).memory == memory)


def defaults(judge):
    config = "defaults"
    kept = burst_and_again(judge, config, keep=ours)
    # 80 idle jobs: 20 pods. Of these 10 wait, three run without a job and five with one, two have ended.
    eighty = of_size(kept, 5400)
    phases = ["Running"] * 12 + ["Succeeded"] * 2 + ["Pending"] * 6
    for name, phase in zip(eighty, phases):
        set_phase(name, phase)
    advertise(config, dict(zip(eighty, ["Unclaimed"] * 3 + ["Claimed"] * 5)))
    set_phase(of_size(kept, 5200)[0], "Failed")
    set_phase(of_size(kept, 5000)[0], "Unknown")
    lost = {Size(1, 5000)}

    def no_more_jobs(size, one, other):
        return "no more jobs" if size in lost and (one, other) == (0, 1) else None

    made = again(judge, "waiting, unmatched, claimed, ended and lost", config, no_more_jobs)
    tell(f"{judge.branch}, {config}: 80 idle jobs beside 13 pods without one get 7",
         [] if counts(made[ours])[Size(1, 5400)] == 7 else [f"{counts(made[ours])}"])
    # One that is kept while it is deleted.
    going = of_size(kept, 5300)[0]
    set_phase(going, "Running")
    CORE.patch_namespaced_pod(going, NAMESPACE, {"metadata": {"finalizers": ["example.org/kept"]}})
    CORE.delete_namespaced_pod(going, NAMESPACE, grace_period_seconds=0)
    lost.add(Size(4, 5300))
    again(judge, "a pod on its way out", config, no_more_jobs)
    CORE.patch_namespaced_pod(going, NAMESPACE, {"metadata": {"finalizers": None}})
    forget_ads()
    remove(config, pods(config).keys())


def every_key(judge):
    config = "every key"
    kept = burst_and_again(judge, config, keep=theirs)
    before = pods(config).keys()
    set_phase(of_size(kept, 5200)[0], "Failed")
    try:
        wait_until("another pod", lambda: pods(config).keys() - before, 60)
        judge.seen["second pod"] += 1
    except TimeoutError:
        pass
    again(judge, "after a failure", config)
    remove(config, pods(config).keys())


def limits(judge):
    config = "limits"
    kept = burst_and_again(judge, config, keep=ours)
    # Five pods are below max_submit_pods_per_cluster, six are not.
    forty, eighty = of_size(kept, 5300), of_size(kept, 5400)
    remove(config, set(forty[5:] + eighty[6:]))
    claimed = forty[:5] + eighty[:6]
    for name in claimed:
        set_phase(name, "Running")
    advertise(config, dict.fromkeys(claimed, "Claimed"))
    made = again(judge, "at the limit of pods", config)
    tell(f"{judge.branch}, {config}: five pods with jobs get more, six do not",
         [] if (counts(made[ours])[Size(4, 5300)], counts(made[ours])[Size(1, 5400)]) == (11, 0) else [f"{counts(made[ours])}"])
    forget_ads()
    remove(config, pods(config).keys())
    job = submit(BAD)
    made = {who: who(config) for who in (theirs, ours)}
    subprocess.run(["condor_rm", job], check=True, capture_output=True)
    judge.step("a malformed ad", config, made[theirs], made[ours], lambda size, one, other: "bad ad" if not one else None)
    remove(config, pods(config).keys())


def patterns(judge):
    burst_and_again(judge, "patterns", keep=ours)
    remove("patterns", pods("patterns").keys())


def published(judge):
    for config in add_published():
        kept = burst_and_again(judge, config, keep=ours)
        if config in WHOSE:
            wanted = {row.size for row in ROWS if WHOSE[config] in row.whom}
            tell(f"{judge.branch}, {config}: pods for the jobs that it is for, and for no others", sorted(map(str, wanted ^ counts(kept).keys())))
        some = of_size(kept, 7100)
        if some:
            for name in some[:5]:
                set_phase(name, "Running")
            advertise(config, dict(zip(some[:5], ["Unclaimed"] * 2 + ["Claimed"] * 3)))
            again(judge, "three claimed", config)
            forget_ads()
        remove(config, pods(config).keys())


def main(branch):
    global CORE, BATCH
    sys.path.insert(0, f"{FOLDER}/{branch}")
    kubernetes.config.load_incluster_config()
    CORE, BATCH = kubernetes.client.CoreV1Api(), kubernetes.client.BatchV1Api()
    judge = Judge(branch)
    for scene in (defaults, every_key, limits, patterns, published):
        scene(judge)
    judge.end()


if sys.argv[1] == "--submit":
    for row in ROWS:
        submit(row.lines, row.count, row.owner)
else:
    main(sys.argv[1])
