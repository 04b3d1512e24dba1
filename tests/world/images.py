"""Makes the images of tests/world/images and puts them into a registry.

Usage: images.py REGISTRY PROGRAMS NAME...   PROGRAMS: a folder with look, look-dynamic, look-musl, look-new and look-nix

Prints for each a line "NAME DIGEST", and of which the layer is to be lost "NAME DIGEST HASH". An image is its folder's image.json:

  base       false: without busybox and the folders that it usually has
  files      by path: a text; {"text", "before", "after", "mode", "uid"}; {"folder": MODE, "uid"}; {"link", "xattrs"}; {"hard"}, a link to that path; "busybox"; {"program"}, of PROGRAMS,
             and {"machine"} of its ELF header; {"host": PATH}, of this machine; null: not in this image
  config     changes of the image's configuration, top of what is beside it
  layers, empty, same, then   so many layers more with a file each; without any; the same once more; with these files
  compression, docker, foreign, bare_manifest   of layers; Docker's manifest; layers by urls; without a mediaType
  config_type, layer_type   other media types of the configuration and of the last layer, which is no archive then
  schema1    true: a manifest of Docker's first form (schema1.py)
  index      the image in an index for these platforms; "attestation" as BuildKit has it
  artifact   no image, but what other tools push: media types of configuration, layer, manifest, artifact
  lost       what the registry has lost

{"repeat": TEXT, "times": N} stands for a long text, and the case may have `called` (the repository) and `tag`.
"""

import copy
import gzip
import hashlib
import json
import pathlib
import subprocess
import sys
import urllib.error

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e" / "hostile"))
import images as made_here  # noqa: E402
import schema1  # noqa: E402

OCI, DOCKER = "application/vnd.oci.image", "application/vnd.docker"
OCI_MANIFEST, OCI_INDEX = f"{OCI}.manifest.v1+json", f"{OCI}.index.v1+json"
DOCKER_MANIFEST = f"{DOCKER}.distribution.manifest.v2+json"
ATTESTED = {"architecture": "unknown", "os": "unknown"}


def settings_of(folder):
    found = {}
    for line in (folder / "case").read_text().splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition(" = ")
            found[key.strip()] = value
    return found


def unfolded(value):
    if isinstance(value, dict):
        if set(value) == {"repeat", "times"}:
            return "".join(value["repeat"].replace("{n}", str(n)) for n in range(value["times"]))
        return {key: unfolded(one) for key, one in value.items()}
    return [unfolded(one) for one in value] if isinstance(value, list) else value


def entry_of(value, programs):
    if value is None or value == "busybox":
        return value
    if isinstance(value, str):
        return made_here.file(value)
    uid = value.get("uid", 0)
    if "folder" in value:
        return made_here.folder(int(value["folder"], 8), uid)
    if "link" in value:
        return made_here.link(value["link"], **{key: text.encode() for key, text in value.get("xattrs", {}).items()})
    if "hard" in value:
        return made_here.hard_link(value["hard"])
    if "text" in value:
        text = value.get("before", "") + value["text"] + value.get("after", "")
        return made_here.file(text, int(value.get("mode", "644"), 8), uid)
    data = pathlib.Path(value["host"] if "host" in value else f"{programs}/{value['program']}").read_bytes()
    if "machine" in value:
        data = data[:18] + value["machine"].to_bytes(2, "little") + data[20:]
    return made_here.file(data, 0o755, uid)


def entries_of(files, programs):
    return {path or ".": entry_of(value, programs) for path, value in files.items()}


def compressed(data, how):
    if how == "zstd":
        return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return gzip.compress(data, mtime=0) if how == "gzip" else data


class Registry:
    def __init__(self, registry, repository):
        self.repository, self.url = repository, f"http://{registry}/v2/{repository}"

    def blob(self, kind, data):
        return {"mediaType": kind} | made_here.push_blob(self.url, data)

    def manifest(self, manifest, kind, tag=None):
        data = json.dumps(manifest).encode()
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        made_here.request("PUT", f"{self.url}/manifests/{tag or digest}", data, kind)
        return {"mediaType": kind, "digest": digest, "size": len(data)}


    def manifest_of_schema1(self, config, layers, tag):
        text = schema1.signed(schema1.manifest(self.repository, tag, config, [one["digest"] for one in layers]))
        answer = made_here.request("PUT", f"{self.url}/manifests/{tag}", text, schema1.KIND)
        return {"digest": answer.headers["Docker-Content-Digest"]}


def attestation(registry):
    config = registry.blob(f"{OCI}.config.v1+json", json.dumps(ATTESTED | {"config": {}, "rootfs": {"type": "layers", "diff_ids": []}}).encode())
    layer = registry.blob("application/vnd.in-toto+json", b'{"_type":"https://in-toto.io/Statement/v0.1","subject":[],"predicate":{}}')
    manifest = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer]}
    return registry.manifest(manifest, OCI_MANIFEST) | {
        "platform": ATTESTED, "annotations": {"vnd.docker.reference.type": "attestation-manifest"}}


def artifact(registry, what, tag):
    empty = what["config"] == "application/vnd.oci.empty.v1+json"
    config = registry.blob(what["config"], b"{}" if empty else b'{"name":"world","version":"0.1.0"}')
    layer = registry.blob(what["layer"], gzip.compress(b"no file system, " * 64, mtime=0))
    kind = what.get("manifest", OCI_MANIFEST)
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]}
    return registry.manifest(manifest | ({"artifactType": what["type"]} if "type" in what else {}), kind, tag)


def image(registry, name, made, programs, tag):
    files = entries_of(made.get("files", {}), programs)
    base = made_here.base(name) | {"etc/image-name": made_here.file(f"world/{name}\n")} if made.get("base", True) else {}
    archives = [made_here.archive(made_here.merged(base, files))]
    archives += [made_here.archive({f"layer-{n}": made_here.file("x")}) for n in range(made.get("layers", 0))]
    archives += [made_here.archive({}) for _ in range(made.get("empty", 0))]
    archives += [archives[0] for _ in range(made.get("same", 0))]
    archives += [made_here.archive(entries_of(later, programs)) for later in made.get("then", [])]
    if "layer_type" in made:
        archives[-1] = b"RAFS" * 1024
    how, docker = made.get("compression", ""), made.get("docker", False)
    kind = f"{DOCKER}.image.rootfs.{'foreign.' if made.get('foreign') else ''}diff.tar.gzip" if docker else f"{OCI}.layer.v1.tar{'+' if how else ''}{how}"
    layers = [registry.blob(kind, compressed(data, how)) for data in archives]
    if "layer_type" in made:
        layers[-1]["mediaType"] = made["layer_type"]
    if made.get("foreign"):
        layers = [one | {"urls": [f"{registry.url}/blobs/{one['digest']}"]} for one in layers]
    settings = ({"Env": ["PATH=/bin"], "Cmd": ["/bin/sh"]} if made.get("base", True) else {}) | made.get("config", {})
    diffs = ["sha256:" + hashlib.sha256(data).hexdigest() for data in archives]
    config = {"architecture": "amd64", "os": "linux", "config": settings, "rootfs": {"type": "layers", "diff_ids": diffs}}
    config |= made.get("top", {})
    if made.get("schema1"):
        return registry.manifest_of_schema1(config, layers, tag), layers
    kind = made.get("config_type", f"{DOCKER}.container.image.v1+json" if docker else f"{OCI}.config.v1+json")
    described = registry.blob(kind, json.dumps(config).encode())
    kind = DOCKER_MANIFEST if docker else OCI_MANIFEST
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": described, "layers": layers}
    if made.get("bare_manifest"):
        del manifest["mediaType"]
    return registry.manifest(manifest, kind, tag), layers


def put(registry, folder, programs):
    settings = settings_of(folder)
    made = unfolded(json.loads((folder / "image.json").read_text()))
    tag = settings.get("tag", "1")
    repository = Registry(registry, settings.get("called", f"world/{folder.name}"))
    if "artifact" in made:
        return artifact(repository, made["artifact"], tag)["digest"]
    if "index" not in made:
        described, layers = image(repository, folder.name, made, programs, tag)
        return described["digest"] + (f" {layers[-1]['digest'].removeprefix('sha256:')}" if "lost" in made else "")
    listed = []
    for platform in made["index"]:
        if platform == "attestation":
            listed.append(attestation(repository))
            continue
        one = copy.deepcopy(made) | {"top": {"architecture": platform["architecture"], "os": platform["os"]}}
        listed.append(image(repository, folder.name, one, programs, None)[0] | {"platform": platform})
    return repository.manifest({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": listed}, OCI_INDEX, tag)["digest"]


if __name__ == "__main__":
    for wanted in sys.argv[3:]:
        try:
            print(wanted, put(sys.argv[1], HERE / "images" / wanted, sys.argv[2]), flush=True)
        except urllib.error.HTTPError as problem:
            sys.exit(f"images.py: {wanted}: {problem}: {problem.read().decode(errors='replace')[:300]}")
