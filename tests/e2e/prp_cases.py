"""The jobs and settings of tests/e2e/prp."""

import collections
import configparser

NAMESPACE = "glidepod"

# --- the jobs --------------------------------------------------------------------------------------------------------
# A group each, which its size tells. Of those with a difference, that is its name below.

Row = collections.namedtuple("Row", "name count size lines differs", defaults=(None,))
Size = collections.namedtuple("Size", "cpus memory disk gpus", defaults=(8000000, 0))
ASKS = f'+RequestK8SNamespace = "{NAMESPACE}"'


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
)
BAD = ['request_memory = "lots"', ASKS]


# --- the settings ----------------------------------------------------------------------------------------------------

CONFIGS = {
    # What PRP's provisioner has without any file.
    "defaults": "",
    "every key": """[DEFAULT]
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
""",
    "limits": """[htcondor]
force_k8s_namespace_matching=no
[k8s]
force_k8s_namespace_matching=no
node_selectors_dict=example.org/nowhere:yes
max_pods_per_cluster=50
max_submit_pods_per_cluster=6
""",
    "patterns": """[htcondor]
force_k8s_namespace_matching=pattern
[k8s]
force_k8s_namespace_matching=pattern
""",
}


def parsed(config):
    ini = configparser.ConfigParser()
    ini.read_string(CONFIGS[config])
    return ini


def app_name(config):
    ini = parsed(config)
    return (ini["k8s"] if "k8s" in ini else ini["DEFAULT"]).get("app_name", "prp-wn")
