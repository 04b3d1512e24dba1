"""The odd images of tests/e2e/hostile, as a registry has them: one layer each, made here.

Most are written after public reports, as tests/e2e/hostile/README.md tells. What a job's end is there, where that is not
the verb's own, stands with the image.

Usage: images.py REGISTRY NAME...   puts these into the registry, as REGISTRY/hostile/NAME:1
"""

import dataclasses
import hashlib
import io
import json
import sys
import tarfile
import urllib.request

BUSYBOX = "/bin/busybox"
APPLETS = ("sh", "cat", "ls", "id", "true", "sleep")
SLOT = 20001  # the first slot's uid


@dataclasses.dataclass
class Image:
    about: str
    files: dict
    config: dict = dataclasses.field(default_factory=dict)
    end: str = ""  # of every job in it; "in doubt": none has started, and other nodes may try it
    weight: int = 4  # 0: only by its name
    patience: int = 0  # more seconds with a job in it
    kubelet: str = ""  # its end where containerd starts it, if that is another
    owned: str = ""  # a shared folder that is the user SLOT's by the image, who then may close it


def folder(mode=0o755, uid=0):
    return ("folder", mode, uid, "")


def file(content="", mode=0o644, uid=0, **xattrs):
    return ("file", mode, uid, content, xattrs)


def link(target, **xattrs):
    return ("link", 0o777, 0, target, xattrs)


def hard_link(target):
    return ("hard link", 0o755, 0, target)


def fifo():
    return ("fifo", 0o666, 0, "")


GONE = None  # not in this image

PASSWD, GROUP = "root:x:0:0:root:/root:/bin/sh\n", "root:x:0:\n"
FOLDERS = {f"many/{n}": folder(0o777, SLOT if n % 3 else 0) for n in range(10000)}
# VFS_CAP_REVISION_2, effective; CAP_SETUID, CAP_SYS_ADMIN and CAP_DAC_OVERRIDE.
CAPABILITIES = b"\x01\x00\x00\x02" + (1 << 7 | 1 << 21 | 1 << 1).to_bytes(4, "little") + bytes(12)


def images(program):
    """By name. PROGRAM: the content of tests/e2e/jobs/hostile.cpp, for those that bring one along."""
    return {
        "plain": Image("nothing odd", {}, weight=8),
        "var-link": Image("/var is the pod's own folder", {"var": link("/glidepod/run"), "var/tmp": GONE}),
        "var-shm": Image("/var is where a neighbour can exchange a link", {"var": link("/dev/shm/bend"), "var/tmp": GONE}, weight=8),
        "var-tmp-link": Image("/var/tmp is the jobs' folder", {"var/tmp": link("/glidepod/scratch")}),
        "tmp-link": Image("/tmp is the pilot's folder", {"tmp": link("/glidepod/run")}),
        "tmp-up": Image("/tmp leads out of the root", {"tmp": link("../../../../proc/1/root/tmp")}),
        "tmp-file": Image("/tmp and /var are files", {"tmp": file("x"), "var": file("x"), "var/tmp": GONE}),
        "tmp-closed": Image("/tmp is closed, /var/tmp is missing", {"tmp": folder(0), "var/tmp": GONE}),
        "tmp-owned": Image("/tmp is the slot's, and full of its files",
                           {"tmp": folder(0o700, SLOT), "tmp/a": folder(0, SLOT), "tmp/a/b": file("x", 0, SLOT),
                            "var/tmp/sticky": folder(0o1777, SLOT + 1), "var/tmp/root": folder(0o1777)},
                           owned="/tmp"),
        "shm-link": Image("/dev/shm is a link", {"dev/shm": link("/glidepod/run"), "dev/mqueue": link("/glidepod/scratch")}),
        "etc-link": Image("/etc is an absolute link", {"etc": link("/system/etc"), "system": folder(), "system/etc": folder(),
                                                       "system/etc/passwd": file(PASSWD), "system/etc/group": file(GROUP)}),
        "etc-run": Image("/etc is the pod's own folder", {"etc": link("/glidepod/run"), "glidepod": folder(), "glidepod/run": folder(),
                                                         "glidepod/run/passwd": file(PASSWD), "glidepod/run/group": file(GROUP)}),
        "nix-passwd": Image("users and groups are links into a store",
                            {"etc/passwd": link("/nix/store/users/passwd"), "etc/group": link("/nix/store/users/group"), "nix": folder(),
                             "nix/store": folder(), "nix/store/users": folder(), "nix/store/users/passwd": file(PASSWD),
                             "nix/store/users/group": file(GROUP)}),
        "passwd-shm": Image("/etc/passwd is where a neighbour can exchange a link",
                            {"etc/passwd": link("/dev/shm/passwd"), "etc/group": link("/dev/shm/bend"), "dev/shm": folder(),
                             "dev/shm/passwd": file(PASSWD), "dev/shm/bend": file(GROUP)}),
        "passwd-folder": Image("/etc/passwd is a folder, /etc/group is /dev/zero",
                               {"etc/passwd": folder(0o777), "etc/group": link("/dev/zero")}, end="refused", weight=1,
                               kubelet="in doubt"),
        "long-group": Image("a group of 10,000 members",
                            {"etc/group": file(GROUP + "many:x:500:root" + "".join(f",u{n}" for n in range(10000, 20000)) + "\n")}),
        "many-folders": Image("ten thousand folders in /tmp, some the slot's", {"tmp/many": folder(0o777)} |
                              {f"tmp/{name}": entry for name, entry in FOLDERS.items()}, weight=1),
        "tuned-env": Image("asks a C library for 16 TiB", {}, {"Env": ["GLIBC_TUNABLES=glibc.malloc.top_pad=0xfffffffffff"]},
                           end="signal 11"),
        "loader-env": Image("bends loaders and shells", {"evil": folder(), "evil/evil.so": file("x", 0o755)},
                            {"Env": ["LD_PRELOAD=/evil/evil.so", "LD_LIBRARY_PATH=/evil", "LD_AUDIT=/evil/evil.so", "ENV=/evil/evil.so",
                                     "BASH_ENV=/evil/evil.so", "MALLOC_CHECK_=3", "LOCPATH=/evil", "TZ=/evil/evil.so"]}),
        "glidepod-env": Image("speaks to our own programs",
                              {}, {"Env": ["GLIDEPOD_GRACE_SECONDS=x", "GLIDEPOD_EXEC_SOCKET=/tmp/x", "GLIDEPOD_AGENT_SOCKET=/tmp/x",
                                           "GLIDEPOD_STAY_MS=1", "GLIDEPOD_SCRATCH=/etc", "GLIDEPOD_RUN=/tmp"]}),
        "setuid": Image("programs that are root's, or have capabilities",
                        {"bin/as-root": file(program, 0o6755),
                         "bin/capable": file(program, 0o755, **{"security.capability": CAPABILITIES})}),
        "workdir-closed": Image("another user's closed home is the WORKDIR", {"home": folder(), "home/app": folder(0o700, 65532)},
                                {"User": "65532", "WorkingDir": "/home/app"}),
        # Read by the image's own shell in the job's process, which is all that it ends.
        "singularity-env": Image("scripts that Apptainer would run", {".singularity.d": folder(), ".singularity.d/env": folder(),
                                 ".singularity.d/env/91-environment.sh": file("kill -9 $$\n", 0o755),
                                 ".singularity.d/runscript": file("#!/bin/sh\nexit 3\n", 0o755)}, end="signal 9"),
        "gpus-all": Image("asks for every GPU of the node, and for a driver that there is not", {},
                          {"Env": ["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_REQUIRE_CUDA=cuda>=99", "NVIDIA_DISABLE_REQUIRE=0"]}),
        "user": Image("a USER without a name", {}, {"User": "12345:54321"}),
        "stop-signal": Image("a real-time STOPSIGNAL", {}, {"StopSignal": "SIGRTMIN+3"}),
        "stop-winch": Image("a STOPSIGNAL that usually says nothing", {}, {"StopSignal": "SIGWINCH", "Entrypoint": ["/nonexistent"]}),
        "resolv-sock": Image("the runtime mounts a file over the agent's socket", {"etc/resolv.conf": link("/glidepod/run/agent.sock")},
                             end="in doubt", weight=1, patience=60),
        "workdir-loop": Image("the WORKDIR is a link to itself", {"loop": link("/loop")}, {"WorkingDir": "/loop"}),
        "proc-file": Image("a file where /proc belongs", {"proc": file("x")}, end="in doubt", weight=1, patience=60),
        "passwd-fifo": Image("/etc/passwd is a FIFO that nobody writes to", {"etc/passwd": fifo()}, end="in doubt", weight=0, patience=300),
        "glidepod-file": Image("a file where the pod's volumes belong", {"glidepod": file("in the way")}, end="refused", weight=1),
    }


def base(name):
    entries = {path: folder() for path in ("bin", "etc", "root", "proc", "sys", "dev", "var")}
    entries |= {"tmp": folder(0o1777), "var/tmp": folder(0o1777), "bin/busybox": "busybox"}
    entries |= {f"bin/{applet}": link("busybox") for applet in APPLETS}
    return entries | {"etc/passwd": file(PASSWD), "etc/group": file(GROUP), "etc/image-name": file(f"hostile/{name}\n")}


def layer(name, changes):
    return archive(merged(base(name), changes))


def merged(entries, changes):
    """The entries with changes, which take away what they cover."""
    for path, entry in changes.items():
        if entry is None or entry[0] == "link":  # nothing stays below a link
            for below in [one for one in entries if one == path or one.startswith(path + "/")]:
                del entries[below]
        if entry is not None:
            entries[path] = entry
    for path in list(entries):  # nor below what is no folder
        parent = path.rpartition("/")[0]
        if parent and (parent not in entries or entries[parent][0] != "folder"):
            del entries[path]
    return entries


def archive(entries):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, entry in entries.items():
            if entry == "busybox":
                entry = file(open(BUSYBOX, "rb").read(), 0o755)
            kind, mode, uid, content = entry[:4]
            info = tarfile.TarInfo(path)
            info.mode, info.uid, info.gid = mode, uid, uid
            info.type = {"folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard link": tarfile.LNKTYPE, "fifo": tarfile.FIFOTYPE, "file": tarfile.REGTYPE}[kind]
            if kind in ("link", "hard link"):
                info.linkname = content
            data = b""
            if kind == "file":
                data = content if isinstance(content, bytes) else content.encode()
                info.size = len(data)
            # PAX headers are text, but what tarfile writes is what it was given in surrogates.
            for key, value in entry[4].items() if len(entry) > 4 else ():
                info.pax_headers[f"SCHILY.xattr.{key}"] = value.decode("utf-8", "surrogateescape")
            tar.addfile(info, io.BytesIO(data) if data else None)
    return made.getvalue()


def request(method, url, data=None, kind="application/octet-stream"):
    asked = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": kind})
    return urllib.request.urlopen(asked, timeout=60)


def push_blob(url, data):
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    place = request("POST", f"{url}/blobs/uploads/", b"").headers["Location"]
    request("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest}", data)
    return {"digest": digest, "size": len(data)}


def push(registry, name, tag, image, program=None):
    """Puts one image, uncompressed, into the registry at http://REGISTRY."""
    url = f"http://{registry}/v2/{name}"
    data = layer(name.rpartition("/")[2], image.files)
    packed = push_blob(url, data)
    settings = {"Env": ["PATH=/bin"], "Cmd": ["/bin/sh"]} | image.config
    config = push_blob(url, json.dumps({"architecture": "amd64", "os": "linux", "config": settings,
                                        "rootfs": {"type": "layers", "diff_ids": [packed["digest"]]}}).encode())
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": {"mediaType": "application/vnd.oci.image.config.v1+json"} | config,
                "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar"} | packed]}
    request("PUT", f"{url}/manifests/{tag}", json.dumps(manifest).encode(), manifest["mediaType"])


if __name__ == "__main__":
    for wanted in sys.argv[2:]:
        push(sys.argv[1], f"hostile/{wanted}", "1", images(b"")[wanted])
