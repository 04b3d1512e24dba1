"""The jobs and settings of tests/e2e/prp."""

import collections
import configparser
import os
import pathlib
import re

FOLDER = "/prp"
NAMESPACE = "glidepod"

# --- the jobs --------------------------------------------------------------------------------------------------------
# A group each, which its size tells. Of those with a difference, that is its name below. For whom: the published settings
# that count these jobs (osgvo: and the example, which has the same expression).

Row = collections.namedtuple("Row", "name count size lines differs whom owner", defaults=(None, (), "alice"))
Size = collections.namedtuple("Size", "cpus memory disk gpus", defaults=(8000000, 0))
ASKS = f'+RequestK8SNamespace = "{NAMESPACE}"'


IMAGE = '+SingularityImage = "docker://registry.example.org/some/image:1"'
PROJECT = '+ProjectName = "Open"'
ICECUBE = ['+Group = "IceCube"', '+ProjectName = "IceCube"', "request_gpus = 1", IMAGE]


def sized(cpus, memory, *more):
    return [f"request_cpus = {cpus}", f"request_memory = {memory}", ASKS, *more]


ROWS = (
    Row("unset and small requests", 3, Size(1, 4096), ["request_memory = 64", "request_disk = 1024", ASKS]),
    Row("small requests", 4, Size(1, 4096), ["request_memory = 4095", "request_disk = 7999999", ASKS]),
    Row("the least that counts", 1, Size(1, 4096, 8000001), ["request_memory = 4096", "request_disk = 8000001", ASKS]),
    Row("one", 1, Size(1, 5000), sized(1, 5000)),
    Row("three", 3, Size(1, 5100), sized(1, 5100)),
    Row("four", 4, Size(2, 5200), sized(2, 5200)),
    Row("forty", 40, Size(4, 5300), sized(4, 5300)),
    Row("eighty", 80, Size(1, 5400), sized(1, 5400)),
    Row("two hundred", 200, Size(1, 5500), sized(1, 5500)),
    Row("disk", 5, Size(1, 5600, 30000000), sized(1, 5600, "request_disk = 30000000")),
    Row("a GPU", 5, Size(2, 5700, gpus=1), sized(2, 5700, "request_gpus = 1")),
    Row("two GPUs", 2, Size(8, 5800, gpus=2), sized(8, 5800, "request_gpus = 2")),
    Row("expressions", 6, Size(4, 12000, gpus=1), sized("2 * 2", "RequestCpus * 3000", "request_gpus = ifThenElse(RequestCpus > 2, 1, 0)")),
    Row("no namespace", 4, Size(1, 5900), sized(1, 5900)[:2]),
    Row("another namespace", 4, Size(1, 6000), sized(1, 6000)[:2] + ['+RequestK8SNamespace = "other"']),
    Row("another project", 4, Size(1, 6100), sized(1, 6100, '+ProjectName = "Closed"')),
    Row("held", 4, Size(1, 6200), sized(1, 6200, "hold = true")),
    Row("any namespace", 4, Size(1, 6300), sized(1, 6300)[:2] + ['+RequestK8SNamespace = ".*"'], "patterns"),
    Row("a part of the name", 4, Size(1, 6400), sized(1, 6400)[:2] + ['+RequestK8SNamespace = "glide"'], "patterns"),
    Row("local universe", 4, Size(1, 6500), sized(1, 6500, "universe = local"), "universes"),
    Row("volumes", 4, Size(1, 6600), sized(1, 6600, '+RequestDiskVolumes = "data:/data"'), "lists"),
    Row("labels", 4, Size(1, 6700), sized(1, 6700, '+RequestLabels = "zone:a"'), "lists"),
    Row("kinds of GPUs", 4, Size(1, 6800, gpus=1), sized(1, 6800, "request_gpus = 1", '+RequestGPUTypes = "L40,A100"'), "lists"),
    Row("a fraction", 4, Size(2, 6900), sized(1.5, 6900), "fractions"),
    Row("no CPU", 4, Size(1, 7000), sized(0, 7000), "no CPU"),
    Row("an image and a project", 40, Size(1, 7100), sized(1, 7100, IMAGE, PROJECT), whom=("osgvo",)),
    Row("for this site", 4, Size(2, 7200), sized(2, 7200, IMAGE, PROJECT, '+DESIRED_Sites = "Other,SDSC-PRP"'), whom=("osgvo",)),
    Row("for another site", 4, Size(1, 7300), sized(1, 7300, IMAGE, PROJECT, '+DESIRED_Sites = "Other"')),
    Row("not for this site", 4, Size(1, 7400), sized(1, 7400, IMAGE, PROJECT, '+UNDESIRED_Sites = "SDSC-PRP"')),
    Row("not for another site", 4, Size(1, 7500), sized(1, 7500, IMAGE, PROJECT, '+UNDESIRED_Sites = "Other"'), whom=("osgvo",)),
    Row("an image, no project", 4, Size(1, 7600), sized(1, 7600, IMAGE)),
    Row("a project, no image", 4, Size(1, 7650), sized(1, 7650, PROJECT)),
    Row("an image, a project and a GPU", 5, Size(4, 7700, gpus=1), sized(4, 7700, IMAGE, PROJECT, "request_gpus = 1"), whom=("osgvo", "ligo")),
    Row("an image, a project and two GPUs", 5, Size(4, 7800, gpus=2), sized(4, 7800, IMAGE, PROJECT, "request_gpus = 2"), whom=("osgvo",)),
    Row("an image and a GPU, no project", 5, Size(1, 7900, gpus=1), sized(1, 7900, IMAGE, "request_gpus = 1"), whom=("ligo",)),
    Row("IceCube's", 30, Size(1, 8000, gpus=1), sized(1, 8000, *ICECUBE), whom=("osgvo", "ligo", "icecube"), owner="ice3simusr"),
    Row("IceCube's of another owner", 5, Size(1, 8100, gpus=1), sized(1, 8100, *ICECUBE), whom=("osgvo", "ligo")),
)
BAD = ['request_memory = "lots"', ASKS]


# --- the settings ----------------------------------------------------------------------------------------------------

# What the start-up script of PRP's image writes.
POD_CONF = f"[DEFAULT]\ncondor_host=cm.example.org\nnamespace={NAMESPACE}\n"
# Figure 3 of "Demand-driven provisioning of Kubernetes-like resources in OSG", by PRP's authors.
EXAMPLE = r"""[HTCondor]
additional_requirements= \
    ((DESIRED_Sites is undefined)|| \
        stringListMember("SDSC-PRP",DESIRED_Sites,","))&& \
        ((UNDESIRED_Sites is undefined)|| \
        !stringListMember("SDSC-PRP",UNDESIRED_Sites,","))&& \
        (!isUndefined(ProjectName))&& \
        (!isUndefined(SingularityImage))
[k8s]
node_affinity_dict=^nautilus.io/low-power:true
"""
# The same in a section that PRP reads, and without what its reader does not know.
SECTION = EXAMPLE.replace("HTCondor", "htcondor")
JOINED = SECTION.replace("\\\n", "\n")

# Each as the texts of its files, later ones over earlier ones.
CONFIGS = {
    # What PRP's provisioner has without any file.
    "defaults": ("",),
    "every key": ("""[DEFAULT]
sleep_time=60
app_name=wn1
namespace=glidepod
condor_host=cm.example.org
k8s_domain=example.org
force_k8s_namespace_matching=no
[htcondor]
additional_requirements=(ProjectName =!= "Closed") &&
  (Owner =!= "nobody")
[k8s]
additional_requirements=(TARGET.ProjectName =!= "Closed")
k8s_image=registry.example.org/wn:1
k8s_image_pull_policy=IfNotPresent
priority_class=prp
priority_class_cpu=prp-cpu
priority_class_gpu=prp-gpu
service_account_name=prp
k8s_job_ttl=3600
request_fuse=no
storage_mbs=
use_large_limit=no
resources_dict=example.org/port:1
labels_dict=project:osg,tier:low
annotations_dict=example.org/note:a&colon;b
envs_dict=GLIDEIN_Site:SDSC&comma;X,RATE:100%%
tolerations_list=example.org/a,example.org/b
node_selectors_dict=example.org/nowhere:yes
node_affinity_dict=^example.org/bad:a|b,example.org/good:c
pvc_volumes_dict=data:!/mnt/data,cvmfs:!#/cvmfs
config_volumes_dict=site:/etc/site.conf
""",),
    "limits": ("""[htcondor]
force_k8s_namespace_matching=no
[k8s]
force_k8s_namespace_matching=no
node_selectors_dict=example.org/nowhere:yes
max_pods_per_cluster=50
max_submit_pods_per_cluster=6
""",),
    "patterns": ("""[htcondor]
force_k8s_namespace_matching=pattern
[k8s]
force_k8s_namespace_matching=pattern
""",),
    "the example": (POD_CONF, EXAMPLE),
    "the example, [htcondor]": (POD_CONF, SECTION),
    "the example, [htcondor], no backslashes": (POD_CONF, JOINED),
}
# Those of which it is known whose jobs they count.
WHOSE = {"the example": "osgvo", "the example, [htcondor]": "osgvo", "the example, [htcondor], no backslashes": "osgvo"}


def add_published():
    """The files that tests/e2e/prp found in a clone, BRANCH-FOLDER.conf, as they are. Returns the names of all that is published."""
    for path in sorted(pathlib.Path(FOLDER, "published").glob("*.conf")):
        CONFIGS[path.stem] = (POD_CONF, path.read_text())
        # There is one schedd, and not all trust the same.
        if not re.fullmatch(trusted(path.stem), os.environ["_CONDOR_SCHEDD_NAME"]):
            print(f"   {path.stem}: with schedd_whitelist_regexp=.*")
            CONFIGS[path.stem] += ("[htcondor]\nschedd_whitelist_regexp=.*\n",)
        WHOSE.update({path.stem: whose for whose in ("osgvo", "ligo", "icecube") if path.stem.endswith(whose)})
    return [config for config in CONFIGS if POD_CONF in CONFIGS[config]]


def parsed(config):
    ini = configparser.ConfigParser()
    for text in CONFIGS[config]:
        ini.read_string(text)
    return ini


def section(config, name):
    """As PRP's programs find theirs."""
    ini = parsed(config)
    return ini[name] if name in ini else ini["DEFAULT"]


def app_name(config):
    return section(config, "k8s").get("app_name", "prp-wn")


def trusted(config):
    return section(config, "htcondor").get("schedd_whitelist_regexp", ".*")
