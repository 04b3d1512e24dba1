#!/usr/bin/env python3
"""An admission webhook that leads the images of one folder of a registry to another, as one for a
mirror does, and has every image pulled anew, as the admission plugin AlwaysPullImages does.

usage: rewrite_images.py ADDRESS PORT CERTIFICATE KEY FROM TO
"""

import base64
import http.server
import json
import ssl
import sys

address, port, certificate, key, old, new = sys.argv[1:]


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


def changes(request):
    for number, container in enumerate(request["object"]["spec"]["containers"]):
        path = f"/spec/containers/{number}"
        if container["image"].startswith(old):
            image = new + container["image"].removeprefix(old)
            yield {"op": "replace", "path": f"{path}/image", "value": image}
        if request["operation"] == "CREATE":
            yield {"op": "add", "path": f"{path}/imagePullPolicy", "value": "Always"}


server = http.server.ThreadingHTTPServer((address, int(port)), Review)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
