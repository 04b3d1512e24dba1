"""A pool and a Kubernetes that are made up, and the real provisioner between them."""
import http.server
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

TOOL = """#!/bin/sh
case "$(basename "$0") $*" in
    *" -schedd "*) exec cat '{folder}/schedds' ;;
    condor_status*) exec cat '{folder}/slots' ;;
    *) exec cat '{folder}/jobs' ;;
esac
"""
SETTINGS = """[DEFAULT]
sleep_time=1
[k8s]
namespace=n
k8s_image=pilot:1
max_pods_per_cluster=0
[glidepod]
status_file=
"""


def stamp(ago):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))


def pod(name, node="node-1", waiting=None, cpus=1, ago=300):
    """A pod that runs, or whose first container waits: (reason, message)."""
    labels = {"PodCPUs": str(cpus), "PodGPUs": "0", "PodMemory": "4096", "PodDisk": "8000000"}
    state = {"waiting": {"reason": waiting[0], "message": waiting[1]}} if waiting else {"running": {"startedAt": stamp(ago)}}
    status = {"phase": "Pending" if waiting else "Running",
              "containerStatuses": [{"name": "pilot", "restartCount": 0, "ready": not waiting, "state": state}]}
    spec = {"containers": [{"name": "pilot", "image": "pilot:1"}]}
    if node:
        spec["nodeName"] = node
        status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(ago)}]
    else:
        status = {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Insufficient cpu."}]}
    return {"metadata": {"name": name, "labels": labels, "creationTimestamp": stamp(ago), "uid": name}, "spec": spec,
            "status": status}


def slot(pod_name, owner=None, job="1.0", state="running", image="reg.example/python:3.12", ago=30, **more):
    """A slot's ad: with a job, or of a pilot that has none."""
    ad = {"Name": f"slot1_1@{pod_name}", "State": "Claimed" if owner else "Unclaimed", "K8SPodName": pod_name,
          "AuthenticatedIdentity": "pilot@pool"}
    if owner:
        ad |= {"RemoteOwner": f"{owner}@pool", "JobId": job, "GlidepodJob": job, "GlidepodState": state,
               "GlidepodSince": int(time.time() - ago), "GlidepodContainer": "payload-0", "GlidepodImage": image,
               "GlidepodHow": "switched", "GlidepodBindTime": 2.5} | more
    return ad


def jobs(count, owner, cpus=1):
    return {"JobCount": count, "Owner": owner, "RequestCpus": cpus, "RequestMemory": 4096, "RequestDisk": 8000000}


class World:
    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="glidepod-page.")
        os.mkdir(f"{self.folder}/bin")
        for name in ("condor_status", "condor_q"):
            with open(f"{self.folder}/bin/{name}", "w", encoding="utf-8") as file:
                file.write(TOOL.format(folder=self.folder))
            os.chmod(file.name, 0o755)
        self.write("schedds", [{"Name": "schedd@pool", "AuthenticatedIdentity": "schedd@pool"}])
        self.pods = []
        self.set([], [], [])
        world = self

        class Api(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                # Without a version nothing is watched: each cycle lists. No pod is a puller.
                path, _, query = self.path.partition("?")
                items = world.pods if path.endswith("/pods") and "glidepod-puller" not in query else []
                body = json.dumps({"kind": "List", "metadata": {}, "items": items}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
        threading.Thread(target=self.api.serve_forever, daemon=True).start()
        self.settings(SETTINGS)
        self.log = open(f"{self.folder}/log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [program, "run", "--config", f"{self.folder}/settings", "--listen", "127.0.0.1:0", "--serve-status",
             "--api-url", f"http://127.0.0.1:{self.api.server_port}"],
            stdout=self.log, stderr=self.log, env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
        self.port = int(self.wait_for_log(r"event=listening port=(\d+)").group(1))
        self.url = f"http://127.0.0.1:{self.port}/"

    def write(self, name, content):
        with open(f"{self.folder}/{name}.new", "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content, indent=0))
        os.rename(file.name, f"{self.folder}/{name}")

    def settings(self, text):
        self.write("settings", text)

    def set(self, pods, slots, idle):
        self.write("slots", slots)
        self.write("jobs", idle)
        self.pods = pods

    def wait_for_log(self, pattern, limit=20):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            with open(self.log.name, encoding="utf-8") as file:
                text = file.read()
            if found := re.search(pattern, text):
                return found
            time.sleep(0.05)
        raise TimeoutError(f"not in the log: {pattern}\n{text[-2000:]}")

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def remove(self):
        if self.process.poll() is None:
            self.stop()
        self.api.shutdown()
        subprocess.run(["rm", "-rf", self.folder], check=False)
