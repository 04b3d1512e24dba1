#!/usr/bin/python3
"""Kinds of image files, each with a job and the end that it must have, with Apptainer as with us.

usage: tests/store/references.py list [short]
       tests/store/references.py make FOLDER [NAME...]      the images, and what Apptainer is to build (build.sh)
       tests/store/references.py push FOLDER REGISTRY [NAME...]                   those that a registry has
       tests/store/references.py submit FOLDER REGISTRY MACHINE REQUIREMENT [NAME...]   one submit description a case
       tests/store/references.py judge FOLDER NAME...       FOLDER has MACHINE.ends and MACHINE/NAME.out of both machines
"""
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import urllib.request

BUSYBOX = "/bin/busybox"
TOOLS = "sh cat env id ls find wc stat md5sum head tail kill sed grep sort test pwd od tr cut readlink date mkdir touch seq".split()
CASES = {}


def case(name, end, says, script=None, tree=None, wrap="sif", squash=(), arguments=None, environment="", image=None, short=False,
         differs=None, form="file", **more):
    """end: an exit code, "signal N" or "refused". says: the job's whole standard output. script: what /bin/sh runs; None: the
    image runs by itself. differs: (end, says) of Apptainer where that is another one, with the reason beside it. short: also in
    CI, on both backends: one kind of each way that a file, its environment or its program takes."""
    CASES[name] = dict(end=str(end), says=says, script=script, tree=tree, wrap=wrap, squash=list(squash), arguments=arguments,
                       environment=environment, image=image, short=short, differs=differs, form=form, **more)


# --- trees -----------------------------------------------------------------------------------------------------------

def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, mode)


def base(root):
    for folder in ("bin", "dev", "etc", "home", "proc", "root", "sys", "tmp", "usr/bin", "var/tmp"):
        os.makedirs(f"{root}/{folder}")
    os.chmod(f"{root}/tmp", 0o1777)
    os.chmod(f"{root}/var/tmp", 0o1777)
    shutil.copy(BUSYBOX, f"{root}/bin/busybox")
    for tool in TOOLS:
        os.symlink("busybox", f"{root}/bin/{tool}")
    write(f"{root}/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
    write(f"{root}/etc/group", "root:x:0:\n")
    write(f"{root}/etc/image-name", "made of a file\n")


def with_files(files):
    def tree(root):
        base(root)
        for name, text in files.items():
            mode = 0o755 if name.endswith("runscript") or text.startswith("#!") else 0o644
            write(f"{root}/{name}", text, mode)
    return tree


def environment_of(text):
    # Apptainer sets the job's variables after 99-base.sh, which all of its images have.
    return with_files({".singularity.d/env/90-environment.sh": text, ".singularity.d/env/99-base.sh": "#!/bin/sh\n"})


def runscript(text):
    return with_files({".singularity.d/runscript": text})


# --- around a squashfs -----------------------------------------------------------------------------------------------

def descriptor(kind, offset, size, name=b"root", extra=b"", used=True, group=0xF0000001):
    one = struct.pack("<i?III3q4q", kind, used, 1, group, 0, offset, size, size, 0, 0, 0, 0)
    return (one + name.ljust(128, b"\0") + extra).ljust(585, b"\0")


def partition_extra(file_system=1, part=2, architecture=b"02\0"):
    return struct.pack("<ii3s", file_system, part, architecture)


def sif(squashfs, file_system=1, part=2, architecture=b"02\0", before=(), after=(), first_line=b"#!/usr/bin/env run-singularity\n"):
    """before and after: (kind, bytes) of further descriptors, beside that of the partition."""
    others = list(before) + [None] + list(after)
    offset, descriptors, data = 32768, b"", b""
    for other in others:
        kind, content, extra = (0x4004, squashfs, partition_extra(file_system, part, architecture)) if other is None else (*other, b"")
        at = offset + len(data)
        descriptors += descriptor(kind, at, len(content), extra=extra)
        data += content.ljust((len(content) + 4095) // 4096 * 4096, b"\0")
    header = first_line.ljust(32, b"\0") + b"SIF_MAGIC\0" + b"01\0" + architecture + bytes(16)
    header += struct.pack("<8q", 0, 0, 48 - len(others), 48, 128, 48 * 585, offset, len(data))
    return (header + descriptors).ljust(offset, b"\0") + data


WRAPS = {
    "sif": sif,
    "squashfs": lambda squashfs: squashfs,
    "launcher": lambda squashfs: b"#!/usr/bin/env run-singularity\n" + squashfs,
    "definition first": lambda squashfs: sif(squashfs, before=[(0x4001, b"Bootstrap: scratch\n"), (0x4003, b"{}")]),
    "signature behind": lambda squashfs: sif(squashfs, after=[(0x4005, b"-----BEGIN PGP SIGNED MESSAGE-----\n")]),
    "many descriptors": lambda squashfs: sif(squashfs, before=[(0x4007, b"x%d" % i) for i in range(40)]),
    "encrypted": lambda squashfs: sif(squashfs, file_system=5),
    "ext3": lambda squashfs: sif(squashfs, file_system=2),
    "data partition": lambda squashfs: sif(squashfs, part=3),
    "cut": lambda squashfs: sif(squashfs)[:-len(squashfs) // 2],
    "no image": lambda squashfs: b"no image\n" * 100,
    "empty": lambda squashfs: b"",
    "text launcher": lambda squashfs: b"#!/bin/sh\necho hello\n",
}

NAME = "cat /etc/image-name; exit 3"
NAMED = "made of a file\n"

for compression in ("gzip", "xz", "lz4", "zstd"):
    case(f"squash-{compression}", 3, NAMED, NAME, squash=["-comp", compression], short=compression == "zstd")
case("squash-lzo", "refused", "", NAME, squash=["-comp", "lzo"], differs=("3", NAMED, "Debian's libsquashfs reads no lzo; Apptainer never writes it"))
case("squash-stored", 3, NAMED, NAME, squash=["-noI", "-noD", "-noF", "-noX"])
case("squash-small-blocks", 3, NAMED, NAME, squash=["-b", "4096"])
case("squash-large-blocks", 3, NAMED, NAME, squash=["-b", "1M", "-no-fragments"])
case("bare-squashfs", 3, NAMED, NAME, wrap="squashfs")
case("launcher-squashfs", 3, NAMED, NAME, wrap="launcher")
case("definition-first", 3, NAMED, NAME, wrap="definition first")
case("signature-behind", 3, NAMED, NAME, wrap="signature behind")
case("many-descriptors", 3, NAMED, NAME, wrap="many descriptors")
case("encrypted", "refused", "", NAME, wrap="encrypted", short=True)
case("ext3", "refused", "", NAME, wrap="ext3")
case("data-partition", "refused", "", NAME, wrap="data partition")
case("cut", "refused", "", NAME, wrap="cut")
case("no-image", "refused", "", NAME, wrap="no image")
case("empty-file", "refused", "", NAME, wrap="empty")
case("text-launcher", "refused", "", NAME, wrap="text launcher")

# --- environment
E = 'echo "$X|$Y"; exit 4'
case("environment", 4, "one|two words\n", E, tree=environment_of('export X=one\nexport Y="two words"\n'), short=True)
case("environment-computed", 4, "made of a file|2\n", E, tree=environment_of('export X=$(cat /etc/image-name)\nY=$((1 + 1))\nexport Y\n'))
case("environment-if", 4, "yes|\n", E, tree=environment_of('if [ -d /etc ]; then\n    export X=yes\nelse\n    export X=no\nfi\n'))
case("environment-sources", 4, "sourced|\n", E,
     tree=with_files({".singularity.d/env/90-environment.sh": ". /opt/settings\n", "opt/settings": "export X=sourced\n"}))
case("environment-not-exported", 4, "|\n", E, tree=environment_of("X=one\n"))
case("environment-job-wins", 4, "job|image\n", E, tree=environment_of('export X=image Y=image\nif true; then :; fi\n'), environment="X=job", short=True)
case("environment-job-wins-plain", 4, "job|image\n", E, tree=environment_of("export X=image Y=image\n"), environment="X=job")
case("environment-odd-values", 4, "it's $A `id` \"q\"|\n", E, tree=environment_of("if true; then :; fi\n"),
     environment="X='it''s $A `id` \"\"q\"\"'", differs=(None, None, "it has a shell evaluate the job's variables, whose values HTCondor takes as they are"))
case("environment-order", 4, "9|8\n", E, tree=with_files({".singularity.d/env/80-a.sh": "export X=8 Y=8\n", ".singularity.d/env/90-b.sh": "export X=9\n"}))
case("environment-arguments", 5, "a b\n", 'echo "$1 $2"; exit 5', tree=environment_of("set -- lost\nif true; then :; fi\n"), arguments="a b",
     differs=("255", "", "its interpreter refuses `set --`"))
case("environment-path", 4, "/opt/bin:/bin|\n", 'echo "$PATH|"; exit 4', tree=environment_of("export PATH=/opt/bin:/bin\n"))
case("environment-path-extended", 4, "tool\n", "tool; exit 4",
     tree=with_files({".singularity.d/env/90-environment.sh": 'export PATH="/opt/bin:$PATH"\nif true; then :; fi\n', "opt/bin/tool": "#!/bin/sh\necho tool\n"}))
case("environment-fails", 4, "one|\n", E, tree=environment_of("false\nno-such-program 2>/dev/null\nexport X=one\n"))

# --- the image by itself
case("runscript", 6, "run a b\n", tree=runscript('#!/bin/sh\necho run "$@"\nexit 6\n'), arguments="a b", short=True)
case("runscript-environment", 0, "one\n", tree=with_files({".singularity.d/runscript": "#!/bin/sh\necho $X\n", ".singularity.d/env/90-environment.sh": "export X=one\n"}))
case("runscript-computed", 0, "2\n", tree=with_files({".singularity.d/runscript": "#!/bin/sh\necho $X\n", ".singularity.d/env/90-environment.sh": "export X=$((1 + 1))\n"}))
case("runscript-signal", "signal 9", "before\n", tree=runscript("#!/bin/sh\necho before\nkill -9 $$\n"),
     differs=("137", "before\n", "Apptainer ends by the code where the shell of its action script did the exec"))
case("runscript-missing", 7, "one\n", arguments="-c 'echo $1; exit 7' sh one")
case("runscript-closed", 7, "shell\n", tree=with_files({".singularity.d/runscript.txt": ""}), arguments="-c 'echo shell; exit 7'")
case("runscript-no-interpreter", 0, "plain\n", tree=with_files({".singularity.d/runscript": "echo plain\n"}))
case("apprun", 0, "app\n", tree=with_files({".singularity.d/runscript": "#!/bin/sh\necho whole\n", "scif/apps/one/scif/runscript": "#!/bin/sh\necho app\n"}),
     environment="APPTAINER_APPNAME=one")
case("apprun-older-name", 0, "app\n", tree=with_files({".singularity.d/runscript": "#!/bin/sh\necho whole\n", "scif/apps/one/scif/runscript": "#!/bin/sh\necho app\n"}),
     environment="SINGULARITY_APPNAME=one")
case("apprun-missing", "refused", "", tree=runscript("#!/bin/sh\necho whole\n"), environment="APPTAINER_APPNAME=none", differs=("1", "", "its own code for it"))
case("apprun-by-path", 8, "app\n", "/scif/apps/one/scif/runscript; exit 8", tree=with_files({"scif/apps/one/scif/runscript": "#!/bin/sh\necho app\n"}))
case("labels", 0, "{}\n", "cat /.singularity.d/labels.json", tree=with_files({".singularity.d/labels.json": "{}\n"}))


# --- what is in it
def many(root):
    base(root)
    for i in range(30000):
        if i % 1000 == 0:
            os.makedirs(f"{root}/many/{i // 1000}")
        write(f"{root}/many/{i // 1000}/{i}", str(i))


def holes(root):
    base(root)
    with open(f"{root}/holes", "wb") as file:
        file.truncate(200 << 20)
        file.seek(100 << 20)
        file.write(b"middle")


def hard_links(root):
    base(root)
    write(f"{root}/one", "same")
    for name in ("two", "three"):
        os.link(f"{root}/one", f"{root}/{name}")


def attributes(root):
    base(root)
    write(f"{root}/marked", "marked\n")
    os.setxattr(f"{root}/marked", "user.mark", b"x")


def odd_names(root):
    base(root)
    os.makedirs(root.encode() + b"/names")
    for name in (b"latin-\xe9", "utf-\u00e9".encode(), b"new\nline", b"back\\slash", b" blank", b"-dash", b"*", b"n" * 255):
        with open(os.path.join(root.encode(), b"names", name), "wb"):
            pass


def deep(root):
    base(root)
    path = root
    for i in range(80):
        path += f"/{'d' * 20}"
    os.makedirs(path)
    write(f"{path}/file", "deep\n")


def setuid(root):
    base(root)
    os.mkdir(f"{root}/opt")
    shutil.copy(BUSYBOX, f"{root}/opt/id")
    os.chmod(f"{root}/opt/id", 0o4755)


def no_shell(root):
    base(root)
    for tool in TOOLS:
        os.remove(f"{root}/bin/{tool}")


def no_passwd(root):
    base(root)
    os.remove(f"{root}/etc/passwd")
    os.remove(f"{root}/etc/group")


def nix(root):
    base(root)
    store = f"{root}/nix/store/0-busybox/bin"
    os.makedirs(store)
    shutil.copy(BUSYBOX, f"{store}/busybox")
    for tool in TOOLS:
        os.remove(f"{root}/bin/{tool}")
        os.symlink(f"/nix/store/0-busybox/bin/{tool}", f"{root}/bin/{tool}")
        os.symlink("busybox", f"{store}/{tool}")
    os.remove(f"{root}/etc/image-name")
    write(f"{root}/nix/store/1-etc/image-name", "made of a file\n")
    os.symlink("/nix/store/1-etc/image-name", f"{root}/etc/image-name")


def links(root):
    base(root)
    os.symlink("/etc/image-name", f"{root}/absolute")
    os.symlink("../../../etc/image-name", f"{root}/usr/bin/up")
    os.symlink("nowhere", f"{root}/dangling")
    os.symlink("l" * 1000, f"{root}/long")
    os.symlink("loop", f"{root}/loop")


def special(root):
    base(root)
    os.mkfifo(f"{root}/fifo")
    os.mknod(f"{root}/null", 0o666 | 0o020000, os.makedev(1, 3))


def no_tmp(root):
    base(root)
    os.rmdir(f"{root}/tmp")
    os.rmdir(f"{root}/var/tmp")


def times(root):
    base(root)
    write(f"{root}/old", "x")
    os.utime(f"{root}/old", (86400, 86400))


def whiteouts(root):
    base(root)
    write(f"{root}/etc/.wh.image-name", "")
    write(f"{root}/bin/.wh..wh..opq", "")


def modes(root):
    base(root)
    write(f"{root}/readable", "x", 0o444)
    write(f"{root}/all", "x", 0o777)
    os.mkdir(f"{root}/sticky")
    os.chmod(f"{root}/sticky", 0o1777)


case("files-30000", 0, "30000\n", "find /many -type f | wc -l", tree=many)
case("holes", 0, "209715200\nmiddle\n", "stat -c %s /holes; tail -c 104857600 /holes | head -c 6; echo", tree=holes)
case("hard-links", 0, "3 same\n", "echo $(stat -c %h /one) $(cat /three)", tree=hard_links)
case("attributes", 0, "marked\n", "cat /marked", tree=attributes)
case("names-odd", 0, "8\n", "find /names -mindepth 1 -print0 | tr -dc '\\0' | wc -c", tree=odd_names)
case("names-bytes", 0, "6c6174696e2de9\n", "cd /names; for f in latin*; do printf %s \"$f\" | od -An -tx1 | tr -d ' '; done", tree=odd_names)
case("deep", 0, "deep\n", "find /dddddddddddddddddddd -type f | while read -r f; do cat \"$f\"; done", tree=deep)
case("setuid", 0, "same\n", "[ $(/opt/id -u) = $(id -u) ] && echo same", tree=setuid)
case("no-shell", 0, "made of a file\n", tree=no_shell, executable="/bin/busybox", arguments="cat /etc/image-name")
case("no-passwd", 3, NAMED, NAME, tree=no_passwd)
case("nix", 3, NAMED, NAME, tree=nix)
case("links", 0, "made of a file\nmade of a file\nnowhere 1001\n",
     "cat /absolute /usr/bin/up; echo $(readlink /dangling) $(readlink /long | wc -c)", tree=links)
case("special", 0, "fifo\n", "[ -p /fifo ] && echo fifo", tree=special, differs=("255", "", "it unpacks the file as the user, who makes no devices"))
case("no-tmp", 3, NAMED, "touch /tmp/x && " + NAME, tree=no_tmp)
case("times", 0, "1970-01-02\n", "date -r /old +%Y-%m-%d", tree=times)
case("whiteouts", 3, NAMED, NAME, tree=whiteouts)
case("modes", 0, "444 777 1777\n", "echo $(stat -c %a /readable /all /sticky)", tree=modes, differs=("0", "444 755 1777\n", "it unpacks the file under a umask"))

# --- how a job finds itself
case("user", 0, "named in-folder home\n",
     'id -un >/dev/null && named=named; [ "$(pwd)" = "$_CONDOR_SCRATCH_DIR" ] && in=in-folder; [ "$HOME" = "$(pwd)" ] && home=home; echo $named $in $home')
case("codes", 137, "", "exit 137")
case("signal", "signal 11", "before\n", "echo before; kill -11 $$", differs=("139", "before\n", "it tells the shell's code for a signal"))
case("container-variables", 0, "app.sif app.sif\n", 'echo "$APPTAINER_NAME ${APPTAINER_CONTAINER##*/}"',
     differs=("0", "app.sif root\n", "where it unpacks the file, that is its folder's path"))
case("missing-program", "refused", "", executable="/no/such/program", arguments="x")

# --- no files: folders, and what a registry has
case("folder", 3, NAMED, NAME, form="folder", short=True)
case("folder-runscript", 6, "run one a b\n", form="folder", arguments="a b",
     tree=with_files({".singularity.d/runscript": '#!/bin/sh\necho run $X "$@"\nexit 6\n', ".singularity.d/env/90-environment.sh": "export X=one\n"}))
case("folder-computed", 4, "made of a file|\n", E, form="folder", tree=environment_of("export X=$(cat /etc/image-name)\n"))
# HTCondor's transfer follows links, and leaves out what leads nowhere on the access point.
case("folder-links", 1, "", "cat /usr/bin/up", form="folder", tree=links)
case("folder-slash", "refused", "", NAME, form="folder/")
case("oras", 3, NAMED, NAME, form="oras", short=True)
case("oras-runscript", 6, "run a b\n", form="oras", tree=runscript('#!/bin/sh\necho run "$@"\nexit 6\n'), arguments="a b")
case("cvmfs-folder", 3, NAMED, NAME, form="cvmfs", image="/cvmfs/site.example/{name}", short=True)
case("cvmfs-images", 3, NAMED, NAME, form="cvmfs", image="/cvmfs/singularity.opensciencegrid.org/.images/7d/{name}")
case("cvmfs-link", 4, "made of a file|\n", E, form="cvmfs", image="/cvmfs/site.example/link-{name}", tree=environment_of("export X=$(cat /etc/image-name)\n"))
case("cvmfs-file", 3, NAMED, NAME, form="cvmfs file", image="/cvmfs/site.example/{name}.sif")
case("cvmfs-missing", "refused", "", NAME, form="cvmfs", image="/cvmfs/site.example/nowhere/{name}")
case("oras-missing", "refused", "", NAME, form="oras", image="oras://{registry}/files/nowhere:1")
# A SIF is no container image, whoever asks for it as one.
case("docker-sif", "refused", "", NAME, form="docker")
case("oras-container", "refused", "", NAME, form="oras", image="oras://{registry}/demo/busybox:1")

# --- as Apptainer itself builds them
BUILD = "apptainer -s build --force {to} {source}"
DEFINITION = """Bootstrap: localimage
From: {folder}
%environment
    export X=one
    export Y="$(cat /etc/image-name)"
%runscript
    echo run $X "$@"
    exit 6
%labels
    version 1
%help
    text
%apprun one
    echo app
%appenv one
    export APP=1
"""
case("built", 4, "one|made of a file\n", E, build=True)
case("built-runscript", 6, "run one a b\n", build=True, arguments="a b")
case("built-labels", 0, "version\n", "grep -o version /.singularity.d/labels.json | head -n 1", build=True)
case("built-app", 0, "app\n", "/scif/apps/one/scif/runscript", build=True)


# --- making them -----------------------------------------------------------------------------------------------------

def in_cvmfs(folder, name, one, root):
    place = folder + one["image"].format(name=name)
    if "/link-" in place:  # as the OSPool's names lead to what it has unpacked
        os.symlink(f"/cvmfs/site.example/{name}", place)
        place = place.replace("/link-", "/")
    elif "/nowhere/" in place:
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    os.rename(root, place)


def make(folder, names):
    os.makedirs(f"{folder}/cvmfs/site.example", exist_ok=True)
    for name in names:
        one, at = CASES[name], f"{folder}/{name}"
        shutil.rmtree(at, ignore_errors=True)
        os.makedirs(at)
        (one["tree"] or base)(f"{at}/root")
        if one["form"] == "cvmfs":
            in_cvmfs(folder, name, one, f"{at}/root")
            continue
        if one["form"].startswith("folder"):
            os.rename(f"{at}/root", f"{at}/app")
            continue
        if one.get("build"):
            write(f"{at}/app.def", DEFINITION.format(folder="root"))
            continue
        subprocess.run(["mksquashfs", f"{at}/root", f"{at}/squashfs", "-noappend", "-quiet", "-no-progress", "-all-root", *one["squash"]],
                       check=True, stdout=subprocess.DEVNULL)
        with open(f"{at}/squashfs", "rb") as squashfs, open(f"{at}/app.sif", "wb") as file:
            file.write(WRAPS[one["wrap"]](squashfs.read()))
        shutil.rmtree(f"{at}/root")
        os.remove(f"{at}/squashfs")
        if one["form"] == "cvmfs file":
            shutil.copy(f"{at}/app.sif", f"{folder}/cvmfs/site.example/{name}.sif")


def quoted(text):
    return text.replace('"', '""').replace("$(", "$(DOLLAR)(")  # which would be a macro


def put(url, content, kind, method="PUT"):
    request = urllib.request.Request(url, content, {"Content-Type": kind}, method=method)
    with urllib.request.urlopen(request) as answer:
        return answer.headers.get("Location")


def push(folder, registry, names):
    """As `apptainer push` does it."""
    for name in names:
        if CASES[name]["form"] not in ("oras", "docker") or CASES[name]["image"]:
            continue
        base_url, layers = f"http://{registry}/v2/files/{name}", []
        with open(f"{folder}/{name}/app.sif", "rb") as file:
            content = file.read()
        for kind, blob in (("application/vnd.sylabs.sif.config.v1+json", b"{}"), ("application/vnd.sylabs.sif.layer.v1.sif", content)):
            digest = "sha256:" + hashlib.sha256(blob).hexdigest()
            at = put(f"{base_url}/blobs/uploads/", b"", "application/octet-stream", "POST")
            put(f"{at}{'&' if '?' in at else '?'}digest={digest}", blob, "application/octet-stream")
            layers.append({"mediaType": kind, "digest": digest, "size": len(blob)})
        layers[1]["annotations"] = {"org.opencontainers.image.title": "app.sif"}
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": layers[0], "layers": layers[1:]}
        put(f"{base_url}/manifests/1", json.dumps(manifest).encode(), manifest["mediaType"])


FORMS = {"file": "{name}/app.sif", "folder": "{name}/app", "folder/": "{name}/app/", "oras": "oras://{registry}/files/{name}:1",
         "docker": "docker://{registry}/files/{name}:1"}


def submit(folder, registry, machine, requirement, names):
    for name in names:
        one = CASES[name]
        image = (one["image"] or FORMS[one["form"]]).format(name=name, registry=registry)
        named = [f'+SingularityImage = "{image}"'] if one["form"].startswith("cvmfs") else ["universe = container", f"container_image = {image}"]
        lines = [*named, f"requirements = {requirement}",
                 f"output = {machine}/{name}.out", f"error = {machine}/{name}.err", f"log = {machine}/{name}.log",
                 "should_transfer_files = yes", "when_to_transfer_output = on_exit", 'transfer_output_files = ""',
                 "request_cpus = 1", "request_memory = 64MB", "request_disk = 1GB", "transfer_executable = false",
                 f'+Reference = "{name}"', "periodic_remove = NumShadowStarts > 3"]
        arguments = one["arguments"] or ""
        if one["script"] is not None:
            script = one["script"].replace("'", "''")
            lines += ["executable = /bin/sh", f"arguments = \"-c '{quoted(script)}' sh {quoted(arguments)}\""]
        else:
            if one.get("executable"):
                lines.append(f"executable = {one['executable']}")
            lines.append(f'arguments = "{quoted(arguments)}"')
        if one["environment"]:
            lines.append(f'environment = "{one["environment"]}"')  # as condor_submit wants it
        write(f"{folder}/{machine}/{name}.sub", "\n".join(lines + ["queue", ""]))


# --- what came of them -----------------------------------------------------------------------------------------------

def ends(folder, machine):
    result = {}
    for source in ("history", "queue"):
        with open(f"{folder}/{machine}.{source}.json", encoding="utf-8") as file:
            for job in json.loads(file.read() or "[]"):
                if job.get("JobStatus") == 4:
                    end = f"signal {job['ExitSignal']}" if job.get("ExitBySignal") else str(job.get("ExitCode"))
                elif job.get("JobStatus") == 5:
                    end = "held: " + job.get("HoldReason", "")
                else:
                    end = f"state {job.get('JobStatus')} after {job.get('NumShadowStarts', 0)} starts"
                result.setdefault(job["Reference"], end)
    return result


def same_end(got, wanted):
    if wanted == "refused":  # Apptainer's own failure is a job that ends with 255
        return got.startswith("held: ") or got == "255"
    return got == wanted


def judge(folder, names):
    for machine in ("ours", "apptainer"):
        if not os.path.exists(f"{folder}/{machine}.history.json"):
            continue
        came = ends(folder, machine)
        for name in names:
            one = CASES[name]
            end, says = one["end"], one["says"]
            if machine == "apptainer" and one["differs"]:
                end, says = one["differs"][:2]
                if end is None:  # it says what nobody knows beforehand
                    continue
            try:
                with open(f"{folder}/{machine}/{name}.out", encoding="utf-8", errors="surrogateescape") as file:
                    said = file.read()
            except FileNotFoundError:
                said = ""
            got = came.get(name, "nothing is known of it")
            right = same_end(got, end) and (end == "refused" or said == says)
            print(f"{'ok' if right else 'not ok'}: {machine}: {name}")
            if not right:
                print(f"   end:  {got}\n   not:  {end}\n   said: {said!r}\n   not:  {says!r}")


def main():
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "list":
        print("\n".join(name for name, one in CASES.items() if one["short"] or arguments != ["short"]))
    elif command == "make":
        make(arguments[0], arguments[1:] or CASES)
    elif command == "push":
        push(arguments[0], arguments[1], arguments[2:] or CASES)
    elif command == "submit":
        submit(*arguments[:4], arguments[4:] or CASES)
    else:
        judge(arguments[0], arguments[1:] or list(CASES))


if __name__ == "__main__":
    main()
