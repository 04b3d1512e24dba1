"""Manifests of schema 1 as Docker made them until 2017: an image's whole configuration in its history, and a signature.

In: what an image has. Out: the text that a registry takes, signed with a key that nobody keeps (a JSON web signature by ECDSA over
P-256, RFC 7515 and 7518, in the form of docker/libtrust: https://github.com/docker/libtrust/blob/master/jsonsign.go).
"""

import base64
import hashlib
import json
import secrets

KIND = "application/vnd.docker.distribution.manifest.v1+prettyjws"

# The curve P-256: y^2 = x^3 - 3x + b modulo P; its base point G is of order N.
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G = (0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
     0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5)


def add(one, other):
    if one is None or other is None:
        return one or other
    (x, y), (u, v) = one, other
    if x == u and (y + v) % P == 0:
        return None
    slope = (3 * x * x - 3) * pow(2 * y, -1, P) if one == other else (v - y) * pow(u - x, -1, P)
    to = (slope * slope - x - u) % P
    return to, (slope * (x - to) - y) % P


def times(factor, point):
    result = None
    while factor:
        if factor & 1:
            result = add(result, point)
        point = add(point, point)
        factor >>= 1
    return result


def base64_of(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value):
    return base64_of(value.to_bytes(32, "big"))


def signed(manifest):
    """The manifest's text with its signature; the digest of the image is that of the text without it."""
    text = json.dumps(manifest, indent=3).encode()
    end = text.rindex(b"\n}")
    protected = base64_of(json.dumps({"formatLength": end, "formatTail": base64_of(text[end:]), "time": "2016-01-01T00:00:00Z"}).encode())
    key = secrets.randbelow(N - 1) + 1
    once = secrets.randbelow(N - 1) + 1
    told = int.from_bytes(hashlib.sha256(f"{protected}.{base64_of(text)}".encode()).digest(), "big")
    r = times(once, G)[0] % N
    s = pow(once, -1, N) * (told + r * key) % N
    x, y = times(key, G)
    signature = {"header": {"jwk": {"crv": "P-256", "kty": "EC", "x": number(x), "y": number(y)}, "alg": "ES256"},
                 "signature": base64_of(r.to_bytes(32, "big") + s.to_bytes(32, "big")), "protected": protected}
    return text[:end] + b',\n   "signatures": ' + json.dumps([signature]).encode() + text[end:]


def manifest(repository, tag, config, layers):
    """config: as an image has it; layers: digests, the lowest first."""
    top = {key: config[key] for key in ("architecture", "os", "config")} | {"created": "2016-01-01T00:00:00Z"}
    history, parent = [], None
    for at, layer in enumerate(layers):
        one = dict(top) if at + 1 == len(layers) else {"created": top["created"], "container_config": {"Cmd": ["layer"]}}
        one["id"] = hashlib.sha256(f"{parent} {layer}".encode()).hexdigest()
        if parent:
            one["parent"] = parent
        parent = one["id"]
        history.insert(0, {"v1Compatibility": json.dumps(one)})
    return {"schemaVersion": 1, "name": repository, "tag": tag, "architecture": config["architecture"],
            "fsLayers": [{"blobSum": layer} for layer in reversed(layers)], "history": history}
