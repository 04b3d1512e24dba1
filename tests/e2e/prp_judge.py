"""What tests/e2e/prp compares: the pods that PRP's event loop and our provisioner made of the same queue."""

import collections
import json

from judging import tell
from prp_cases import FOLDER, ROWS, Size, section


def size_of(pod):
    labels = pod["metadata"]["labels"]
    return Size(*(int(labels[name]) for name in ("PodCPUs", "PodMemory", "PodDisk", "PodGPUs")))


# --- what differs ----------------------------------------------------------------------------------------------------
# Each with words of docs/prp.md that say it. A difference that did not come up fails, so that none outlives its reason.

DIFFERENCES = {
    "sections": "which is then silently not read",
    "backslashes": "a backslash at the line's end, as in the published example",
    "patterns": "PRP takes what the *job* says as a pattern",
    "universes": "not local, scheduler and grid ones",
    "lists": "its pods do not have these as labels",
    "fractions": "1.5 CPUs",
    "no CPU": "0 CPUs",
    "bad ad": "One malformed ad",
    "jobs": "not through a `Job`",
    "second pod": "no second pod after a failure",
    "no more jobs": "A pod that is being deleted",
    "group label": "`glidepod.io/group`",
    "storage": "the larger of it and the job's own `RequestDisk`",
    "affinity": "an empty one sends no term",
    "kinds of GPUs": "`gpu_type_label`",
    "osg_testing": "`osg_testing`",
    "ospool_pool_base": "`ospool_pool_base`",
}
# What is expected of one branch only.
OF_BRANCH = {"osg_testing", "ospool_pool_base"}


class Judge:
    def __init__(self, branch):
        self.branch = branch
        self.seen = collections.Counter()

    def step(self, what, config, their_pods, our_pods, explain):
        """The pods of one step; explain: which difference a size is, from what both made of it."""
        their_count, our_count = counts(their_pods), counts(our_pods)
        wrong, agreed, names = [], 0, collections.Counter()
        for size in sorted(their_count.keys() | our_count.keys()):
            one, other = their_count[size], our_count[size]
            if one == other:
                agreed += one
                continue
            name = explain(size, one, other)
            if name:
                names[name] += 1
            else:
                wrong.append(f"{size}: PRP made {one} pods, we {other}")
        specs = self.compare_specs(their_pods, our_pods, wrong)
        print(f"   {config}, {what}: PRP {sum(their_count.values())} pods, we {sum(our_count.values())}; the same {agreed}, of {specs} sizes alike; differ: {dict(names)}")
        self.seen.update(names)
        tell(f"{self.branch}, {config}, {what}: the same pods, but for what docs/prp.md says", wrong)

    def compare_specs(self, their_pods, our_pods, wrong):
        """Of each size that both made, the pods themselves."""
        mine = {size_of(pod): pod for pod in our_pods.values()}
        sizes = {}
        for pod in their_pods.values():
            sizes[size_of(pod)] = pod
        both = sizes.keys() & mine.keys()
        for size in both:
            one, other = flat(facts(sizes[size])), flat(facts(mine[size]))
            for path in sorted(one.keys() | other.keys()):
                if one.get(path) == other.get(path):
                    continue
                name = self.explain_spec(path, one.get(path), other.get(path), size)
                if name:
                    self.seen[name] += 1
                else:
                    wrong.append(f"{size}: {path}: PRP {one.get(path)}, we {other.get(path)}")
        return len(both)

    def explain_spec(self, path, one, other, size):
        if path.startswith("/labels/") and path.split("/")[-1] in ("controller-uid", "job-name"):
            return "jobs"
        if path == "/labels/glidepod.io~group":
            return "group label"
        if path.endswith("/ephemeral-storage"):
            return "storage" if as_said(one, other, size.disk) else None
        if path == "/affinity":
            return "affinity" if other is None else "kinds of GPUs" if size.memory == 6800 else None
        if path == "/env/GLIDEPOD_GPU_TYPES":
            return "kinds of GPUs" if one is None and size.memory == 6800 else None
        if self.branch == "ospool_pool_base" and path == "/env/DISK" and one and other and int(one) > int(other):
            return "ospool_pool_base"
        if self.branch == "osg_testing" and (one == "0" and path.endswith("/nvidia.com~gpu") or "&" in str(one) or path in OLDER):
            return "osg_testing"
        return None

    def end(self):
        expected = {name for name in DIFFERENCES if name not in OF_BRANCH or name == self.branch}
        tell(f"{self.branch}: each difference that is expected came up", sorted(expected - self.seen.keys()))
        with open(f"{FOLDER}/prp.md") as file:
            text = " ".join(file.read().split())
        tell(f"{self.branch}: docs/prp.md says each", [f"{name}: {words}" for name, words in DIFFERENCES.items() if words not in text])


# Keys of the settings that osg_testing does not know yet.
OLDER = {f"/containers/0/resources/{whose}/{what}" for whose in ("requests", "limits") for what in ("cpu", "memory")} | {"/serviceAccountName"}


def as_said(one, other, disk):
    """PRP's has not what jobs ask for beyond storage_mbs, or counts what we do in kB."""
    theirs, mine = quantity(one or "0"), quantity(other or "0")
    return (theirs in (0, 20000 << 20) and mine == disk * 1024) or theirs * 1024 == mine * 1000


def quantity(text):
    number = text.rstrip("kKMGTi")
    return int(number) * {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}[text[len(number):]]


def counts(of_pods):
    return collections.Counter(map(size_of, of_pods.values()))


def facts(pod):
    """What a pod was asked to be: no names, times or mounts that the API adds."""
    spec = pod["spec"]
    container = dict(spec["containers"][0])
    env = {entry["name"]: entry.get("value") or json.dumps(entry.get("valueFrom"), sort_keys=True) for entry in container.pop("env")}
    volumes = {volume["name"]: volume for volume in spec["volumes"] if "token" not in volume["name"] and "projected" not in volume}
    mounts = {mount["name"]: mount for mount in container.pop("volumeMounts") if mount["name"] in volumes}
    container.pop("terminationMessagePath", None)
    return {
        "labels": pod["metadata"]["labels"],
        "annotations": {k: v for k, v in pod["metadata"].get("annotations", {}).items() if not k.startswith("glidepod.io/")},
        "env": env, "volumes": volumes, "mounts": mounts, "containers": [container],
        "tolerations": [t for t in spec.get("tolerations", []) if not t["key"].startswith("node.kubernetes.io/")],
        "affinity": json.dumps(spec["affinity"], sort_keys=True) if spec.get("affinity") else None,
        **{key: spec.get(key) for key in ("nodeSelector", "priorityClassName", "serviceAccountName", "restartPolicy",
                                          "activeDeadlineSeconds", "imagePullSecrets", "terminationGracePeriodSeconds")},
    }


def flat(value, path=""):
    if isinstance(value, dict) and value:
        items = value.items()
    elif isinstance(value, list) and value:
        items = enumerate(value)
    else:
        return {} if value in (None, {}, []) else {path: value}
    result = {}
    for key, inner in items:
        result.update(flat(inner, f"{path}/{str(key).replace('/', '~')}"))
    return result


def by_row(config, burst):
    """Explains sizes by the difference that their row has, or the example's settings."""
    force = section(config, "htcondor").get("force_k8s_namespace_matching", "yes")
    rows = {row.size: row for row in ROWS}

    def explain(size, one, other):
        row = rows.get(size)
        name = row.differs if row else "no CPU" if size == Size(0, 7000) else None
        wanted = row is not None and "osgvo" in row.whom
        if config == "the example" and one and not other and not wanted:
            return "sections"
        if config == "the example, [htcondor]" and not one and other and wanted:
            return "backslashes"
        if name == "patterns":
            whole = force == "pattern" and row.name == "any namespace"
            return name if force != "no" and not whole and one and not other else None
        if name == "universes":
            return name if one and not other else None
        if name == "lists":
            return name if not burst and one and not other else None
        if name == "fractions":
            return name if not one and other else None
        if name == "no CPU":
            return name if (one == 0) != (other == 0) else None
        return None

    return explain
