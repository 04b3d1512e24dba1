#!/usr/bin/env python3
"""An admission webhook that changes the images of pods, as those of real clusters do.

usage: admission.py ADDRESS PORT CERTIFICATE KEY registry FROM TO
       admission.py ADDRESS PORT CERTIFICATE KEY digest [HOST]
       admission.py ADDRESS PORT CERTIFICATE KEY tag-and-digest [HOST]

registry: what begins with FROM begins with TO, as for a mirror, and every image is pulled anew, as with the admission plugin
AlwaysPullImages. digest: repository@sha256:..., without the tag, as Kyverno's policy resolve-image-to-digest has it.
tag-and-digest: repository:tag@sha256:..., as k8s-digester has it. Both of these ask the registry HOST, for its own images.
"""

import base64
import http.server
import json
import ssl
import sys
import urllib.request

address, port, certificate, key, how, *words = sys.argv[1:]
TYPES = ("application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, "
         "application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json")


class Review(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        patch = json.dumps(list(changes(request))).encode()
        answer = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {
                "uid": request["uid"],
                "allowed": True,
                "patchType": "JSONPatch",
                "patch": base64.b64encode(patch).decode(),
            },
        }
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


def digest_of(host, repository, tag):
    """What the registry says, or none: then the image stays as it is."""
    request = urllib.request.Request(f"http://{host}/v2/{repository}/manifests/{tag}", method="HEAD", headers={"Accept": TYPES})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.headers["Docker-Content-Digest"]
    except OSError:
        return None


def changed(image):
    if how == "registry":
        old, new = words
        return new + image.removeprefix(old) if image.startswith(old) else image
    host = words[0]
    if not image.startswith(host + "/"):
        return image
    name, _, digest = image.removeprefix(host + "/").partition("@")
    repository, _, tag = name.partition(":")
    digest = digest or digest_of(host, repository, tag or "latest")
    if not digest:
        return image
    kept = f":{tag}" if how == "tag-and-digest" and tag else ""
    return f"{host}/{repository}{kept}@{digest}"


def changes(request):
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(request["object"]["spec"].get(kind, [])):
            path = f"/spec/{kind}/{number}"
            image = changed(container["image"])
            if image != container["image"]:
                yield {"op": "replace", "path": f"{path}/image", "value": image}
            if how == "registry" and request["operation"] == "CREATE":
                yield {"op": "add", "path": f"{path}/imagePullPolicy", "value": "Always"}


server = http.server.ThreadingHTTPServer((address, int(port)), Review)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
