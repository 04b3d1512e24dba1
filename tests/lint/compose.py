#!/usr/bin/python3
"""Puts together what kustomizations list, as `kubectl kustomize` does: Debian 12's kubectl is too old for ours.

usage: python3 -B tests/lint/compose.py FOLDER...

Prints the objects of all folders as one List in JSON, as a kustomization would have it that lists them. Knows what the
manifests and the docs use, and refuses everything else; where there is a kubectl of 1.21 or later, tests/lint/manifests
compares each result with its.
"""

import copy
import functools
import hashlib
import json
import pathlib
import re
import sys

import yaml

KNOWN = {"apiVersion", "kind", "namespace", "resources", "components", "configMapGenerator", "generatorOptions", "patches",
         "images"}
CLUSTER_WIDE = {"Namespace", "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy",
                "ValidatingAdmissionPolicyBinding", "CustomResourceDefinition"}
HASHED = "a name with a hash"  # a mark, until all is put together


class Problem(Exception):
    """What kustomize would refuse too, or this does not know."""


class Loader(yaml.SafeLoader):
    """Refuses a key that stands twice, of which YAML readers silently take the last."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"key {key} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def read(text):
    """The objects of a text in YAML or JSON."""
    try:
        return [value for value in yaml.load_all(text, Loader) if value is not None]
    except yaml.YAMLError as problem:
        raise Problem(" ".join(str(problem).split())) from problem


@functools.cache
def read_file(path):
    return read(path.read_text())


def identity(value):
    return (value["apiVersion"], value["kind"], value["metadata"].get("namespace"), value["metadata"]["name"])


def add(objects, more):
    there = {identity(value) for value in objects}
    for value in more:
        if identity(value) in there:
            raise Problem(f"{identity(value)} stands twice")
        there.add(identity(value))
        objects.append(value)


def within(value):
    """The value and everything in it."""
    yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from within(part)


# --- config maps -------------------------------------------------------------------

def generate(folder, objects, generator, general):
    options = {**general, **generator.get("options", {})}
    labels = {**general.get("labels", {}), **generator.get("options", {}).get("labels", {})}
    if set(options) - {"labels", "disableNameSuffixHash"}:
        raise Problem(f"config map {generator['name']}: options {sorted(options)}")
    data = dict(literal.split("=", 1) for literal in generator.get("literals", []))
    for name in generator.get("files", []):
        if not (folder / name).is_file():
            raise Problem(f"no such file: {name}")
        data[name] = (folder / name).read_text()
    meta = {"name": generator["name"]} | ({"namespace": generator["namespace"]} if "namespace" in generator else {})
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    behavior = generator.get("behavior", "create")
    if behavior != "create":
        before = [value for value in objects if identity(value) == identity(made)]
        if not before:
            raise Problem(f"{behavior} of a config map that is not there: {generator['name']}")
        objects.remove(before[0])
        labels = {**before[0]["metadata"].get("labels", {}), **labels}
        made["data"] = {**before[0]["data"], **data} if behavior == "merge" else data
    if labels:
        meta["labels"] = labels
    if not options.get("disableNameSuffixHash"):
        made[HASHED] = True
    add(objects, [made])


def name_by_content(objects):
    """Names of config maps that change with what is in them, also where they are referred to."""
    for value in [value for value in objects if value.pop(HASHED, False)]:
        name = value["metadata"]["name"]
        text = json.dumps({"data": value["data"], "kind": "ConfigMap", "name": ""}, sort_keys=True,
                          separators=(",", ":"), ensure_ascii=False)
        for character in "<>&\u2028\u2029":  # as Go writes JSON
            text = text.replace(character, f"\\u{ord(character):04x}")
        digest = hashlib.sha256(text.encode()).hexdigest()[:10].translate(str.maketrans("013ae", "ghkmt"))
        value["metadata"]["name"] = f"{name}-{digest}"
        for other in objects:
            if other["metadata"].get("namespace") == value["metadata"].get("namespace"):
                for part in within(other):
                    for key in ("configMap", "configMapRef", "configMapKeyRef"):
                        if isinstance(part, dict) and isinstance(part.get(key), dict) and part[key].get("name") == name:
                            part[key]["name"] = value["metadata"]["name"]


# --- changes -----------------------------------------------------------------------

def is_meant(value, target):
    group, _, version = value["apiVersion"].rpartition("/")
    has = {"group": group, "version": version, "kind": value["kind"], "name": value["metadata"]["name"],
           "namespace": value["metadata"].get("namespace", "")}
    if set(target) - set(has):
        raise Problem(f"target {target}")
    return all(re.fullmatch(pattern, has[key]) for key, pattern in target.items())


def change(value, steps):
    """A JSON patch."""
    for step in steps:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        place = value
        try:
            for part in parents:
                place = place[int(part) if isinstance(place, list) else part]
            if isinstance(place, list):
                last = int(last)
            if step["op"] == "add" and isinstance(place, list):
                place.insert(last, step["value"])
            elif step["op"] == "add":
                place[last] = step["value"]
            elif step["op"] == "replace":
                del place[last]  # must be there
                place.insert(last, step["value"]) if isinstance(place, list) else place.update({last: step["value"]})
            elif step["op"] == "remove":
                del place[last]
            elif step["op"] != "test":
                raise Problem(f"operation {step['op']}")
            elif place[last] != step["value"]:
                raise Problem(f"{identity(value)}: {step['path']} is not {step['value']}")
        except (KeyError, IndexError, ValueError, TypeError) as problem:
            raise Problem(f"{identity(value)} has no {step['path']}") from problem


def merge(value, part):
    """A strategic merge, of maps; lists would need the key by which Kubernetes merges them."""
    for key, new in part.items():
        if isinstance(new, list) or key.startswith("$"):
            raise Problem(f"merge of {key}")
        if new is None:
            value.pop(key, None)
        elif isinstance(new, dict):
            merge(value.setdefault(key, {}), new)
        else:
            value[key] = new


def patch(objects, entry, must):
    if set(entry) - {"patch", "target"}:
        raise Problem(f"patch with {sorted(entry)}")
    (what,) = read(entry["patch"])
    target = entry.get("target")
    if target is None:
        meant = [value for value in objects if identity(value) == identity(what)]
    else:
        meant = [value for value in objects if is_meant(value, target)]
    if not meant and (must or target is None):
        raise Problem(f"a patch of nothing: {entry}")
    for value in meant:
        if isinstance(what, list):
            change(value, what)
        elif what.get("$patch") == "delete":
            objects.remove(value)
        elif target is None:
            merge(value, what)
        else:
            raise Problem(f"a patch for a target that is neither of steps nor deletes: {entry}")


def move(objects, namespace):
    """Into another namespace, with the accounts that bindings name."""
    accounts = {(value["metadata"].get("namespace"), value["metadata"]["name"]) for value in objects
                if value["kind"] == "ServiceAccount"}
    for value in objects:
        for subject in value.get("subjects", []):
            if (subject.get("namespace"), subject["name"]) in accounts or subject["name"] == "default":
                subject["namespace"] = namespace
        if value["kind"] == "Namespace":
            value["metadata"]["name"] = namespace
        elif value["kind"] not in CLUSTER_WIDE:
            value["metadata"]["namespace"] = namespace
    add([], objects)


def replace_image(objects, image):
    if set(image) - {"name", "newName", "newTag"}:
        raise Problem(f"image with {sorted(image)}")
    for value in objects:
        for part in within(value):
            if isinstance(part, dict):
                for container in part.get("initContainers", []) + part.get("containers", []):
                    name, _, tag = container["image"].rpartition(":")
                    if name == image["name"]:
                        container["image"] = image.get("newName", name) + ":" + image.get("newTag", tag)


# --- kustomizations ----------------------------------------------------------------

def accumulate(folder, objects):
    (kustomization,) = read_file(folder / "kustomization.yaml")
    if set(kustomization) - KNOWN:
        raise Problem(f"{folder}: {sorted(set(kustomization) - KNOWN)}")
    for name in kustomization.get("resources", []):
        there = folder / name
        if there.is_dir():
            more = []
            accumulate(there, more)
        elif there.is_file():
            more = copy.deepcopy(read_file(there))
        else:
            raise Problem(f"{folder}: no such resource: {name}")
        add(objects, more)
    for generator in kustomization.get("configMapGenerator", []):
        generate(folder, objects, generator, kustomization.get("generatorOptions", {}))
    for name in kustomization.get("components", []):
        accumulate(folder / name, objects)
    # What a component is to change need not be there.
    for entry in kustomization.get("patches", []):
        patch(objects, entry, kustomization.get("kind") != "Component")
    if "namespace" in kustomization:
        move(objects, kustomization["namespace"])
    for image in kustomization.get("images", []):
        replace_image(objects, image)


def compose(folders):
    """The objects of all the folders together; namespaces come first, as others are in them."""
    objects = []
    for folder in folders:
        more = []
        accumulate(pathlib.Path(folder), more)
        add(objects, more)
    name_by_content(objects)
    return sorted(objects, key=lambda value: value["kind"] != "Namespace")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        print(json.dumps({"apiVersion": "v1", "kind": "List", "items": compose(sys.argv[1:])}))
    except (Problem, OSError) as reason:
        sys.exit(f"compose: {reason}")
