#!/usr/bin/env python3
"""A Kubernetes API, podhost's or an API server's, as seen over a bad network: stands between agents and the
real one, and delays, resets, truncates and repeats requests, loses their answers, and answers with errors.

usage: bad_api.py SEED LOG CALM sockets FOLDER
       bad_api.py SEED LOG CALM tls ADDRESS PORT CERTIFICATE KEY HOST

The first takes the place of every api.sock of podhost's pods below FOLDER, also of those to come; the second
serves ADDRESS:PORT and goes on to HOST:443. Each fault is a line in LOG. While a file CALM exists there are none.
"""

import glob
import json
import os
import random
import select
import socket
import ssl
import struct
import sys
import threading
import time

# How often each fault befalls a request; the rest pass.
FAULTS = {"delay": 10, "reset": 4, "lost": 6, "truncate": 4, "repeat": 5, "error": 6, "error-after": 3}
WATCH_FAULTS = {"delay": 10, "reset": 6, "cut": 30, "error": 6}
ERRORS = {403: "Forbidden", 409: "Conflict", 410: "Expired", 429: "TooManyRequests",
          500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}

seed, log_path, calm_path, kind = sys.argv[1:5]
log_file = open(log_path, "a", buffering=1)
counter = 0
lock = threading.Lock()


def choose(request):
    """The fault for a request, and its own source of chance."""
    global counter
    with lock:
        counter += 1
        chance = random.Random(f"{seed} {counter}")
    if os.path.exists(calm_path):
        return None, chance
    faults = WATCH_FAULTS if b"watch=" in request.split(b"\r\n")[0] else FAULTS
    names = list(faults) + [None]
    weights = list(faults.values()) + [100 - sum(faults.values())]
    fault = chance.choices(names, weights)[0]
    if fault:
        line = request.split(b"\r\n")[0].decode(errors="replace")
        log_file.write(f"{time.time():.3f} {fault} {line}\n")
    return fault, chance


def read_request(client):
    """Head and body of the next request, or nothing at its end."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = client.recv(65536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    kept = []
    for line in head.split(b"\r\n"):
        name = line.split(b":")[0].lower()
        if name == b"content-length":
            length = int(line.split(b":")[1])
        if name != b"connection":
            kept.append(line)
    while len(body) < length:
        body += client.recv(65536)
    return b"\r\n".join(kept) + b"\r\nConnection: close\r\n\r\n" + body


def whole_answer(connect, request):
    with connect() as server:
        server.sendall(request)
        parts = []
        while part := server.recv(65536):
            parts.append(part)
    return b"".join(parts)


def pass_on(client, connect, request, deadline=None):
    """Passes the answer on as it comes, until either side ends or the deadline is over."""
    with connect() as server:
        server.sendall(request)
        while True:
            left = None if deadline is None else max(0, deadline - time.monotonic())
            if isinstance(server, ssl.SSLSocket) and server.pending():
                ready = [server]
            else:
                ready, _, _ = select.select([client, server], [], [], left)
            if not ready or client in ready:
                return
            part = server.recv(65536)
            if not part:
                return
            if deadline and time.monotonic() > deadline:
                part = part[: len(part) // 2]
            client.sendall(part)


def reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def refuse(client, chance):
    code = chance.choice(list(ERRORS))
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                       "reason": ERRORS[code], "message": "the test's bad weather"}).encode()
    retry = "Retry-After: 1\r\n" if code == 429 else ""
    client.sendall(f"HTTP/1.1 {code} {ERRORS[code]}\r\nContent-Type: application/json\r\n{retry}"
                   f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)


def serve(client, connect, wrap):
    try:
        with wrap(client) as client:
            request = read_request(client)
            if not request:
                return
            fault, chance = choose(request)
            deadline = None
            if fault == "delay":
                time.sleep(chance.uniform(0.1, 4))
            elif fault == "reset":
                return reset(client)
            elif fault == "error":
                return refuse(client, chance)
            elif fault == "lost":
                whole_answer(connect, request)
                return reset(client)
            elif fault == "error-after":
                whole_answer(connect, request)
                return refuse(client, chance)
            elif fault == "truncate":
                answer = whole_answer(connect, request)
                return client.sendall(answer[: chance.randrange(len(answer) + 1)])
            elif fault == "repeat":
                whole_answer(connect, request)
            elif fault == "cut":
                deadline = time.monotonic() + chance.uniform(0.1, 5)
            pass_on(client, connect, request, deadline)
    except OSError:
        pass  # one of both sides has gone; so does the other


def accept_for_ever(listener, connect, wrap=lambda client: client):
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(client, connect, wrap), daemon=True).start()


def take_place(path, listeners):
    """Listens at the path instead of the socket there, which moves aside."""
    aside = path + ".real"
    os.rename(path, aside)
    listener = socket.socket(socket.AF_UNIX)
    bind_long(listener, path)
    listener.listen(64)
    listeners[path] = (os.stat(path).st_ino, listener)

    def connect():
        server = socket.socket(socket.AF_UNIX)
        reach_long(server, aside)
        return server

    threading.Thread(target=accept_for_ever, args=(listener, connect), daemon=True).start()


# A socket's path is at most 107 bytes long, by way of a descriptor of its folder.
def bind_long(sock, path):
    folder = os.open(os.path.dirname(path), os.O_PATH)
    sock.bind(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    os.close(folder)


def reach_long(sock, path):
    folder = os.open(os.path.dirname(path), os.O_PATH)
    try:
        sock.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    finally:
        os.close(folder)


def follow_sockets(folder):
    listeners = {}
    while True:
        for path in glob.glob(f"{glob.escape(folder)}/pods/*/volumes/*/api.sock"):
            try:
                known = listeners.get(path)
                if known and os.stat(path).st_ino == known[0]:
                    continue
                if known:
                    known[1].close()
                take_place(path, listeners)
            except OSError:
                pass  # of a pod that is just going
        for path in [path for path in listeners if not os.path.exists(path)]:
            listeners.pop(path)[1].close()
        time.sleep(0.2)


def serve_tls(address, port, certificate, key, host):
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate, key)
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    theirs.check_hostname = False
    theirs.verify_mode = ssl.CERT_NONE

    def connect():
        return theirs.wrap_socket(socket.create_connection((host, 443), timeout=60))

    listener = socket.create_server((address, int(port)), backlog=64)
    accept_for_ever(listener, connect, lambda client: ours.wrap_socket(client, server_side=True))


if kind == "sockets":
    follow_sockets(*sys.argv[5:])
else:
    serve_tls(*sys.argv[5:])
