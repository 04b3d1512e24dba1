"""A pilot pod as tests/e2e/hostile sees it from outside, as root, in a PID namespace that has all of its processes."""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import time

SLOTS = range(20001, 20065)
INNER = range(40000, 60000)  # users of pilot jobs' own jobs
SCRATCH = "/glidepod/scratch"
# Lines of the agent's log that count against its pilot, or tell of a container lost. An image that cannot start, and a job
# that is refused, are the user's, and not among them.
COUNTED = ("given_up", "glue_lost", "glue_closed", "glue_wedged", "unexpected_transition", "not_drained", "users_not_kept")

# What a runtime mounts below /etc. Where an image's /etc is a link into a volume, it makes what they are mounted on there:
# empty, root's, and only where there is nothing of that name.
MOUNT_POINTS = ("hostname", "hosts", "resolv.conf")
EMPTY = "-rwxr-xr-x 0:0 0 "


def of_jobs(uid):
    return uid in SLOTS or uid in INNER


def read(path, default=""):
    try:
        with open(path, errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return default


def processes():
    """(pid, name, uid, parent) of every process."""
    result = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = dict(line.split(":\t", 1) for line in read(f"/proc/{entry}/status").splitlines() if ":\t" in line)
            if fields.get("Uid") and not fields.get("State", "Z").startswith("Z"):
                result.append((int(entry), fields["Name"], int(fields["Uid"].split()[0]), int(fields["PPid"])))
    return result


def look(path):
    """What must not change of a file."""
    info = os.lstat(path)
    mark = (info.st_size, info.st_mtime_ns) if stat.S_ISREG(info.st_mode) else ()
    if path.endswith("/etc/hosts"):  # a kubelet writes it again, the same, whenever it starts a container
        mark = (read(path),)
    target = os.readlink(path) if stat.S_ISLNK(info.st_mode) else ""
    return f"{stat.filemode(info.st_mode)} {info.st_uid}:{info.st_gid} {' '.join(map(str, mark))}{target}"


class Pod:
    def __init__(self, status_command, log_command):
        self.log_command, self.log_seen = log_command, 0
        self.find(status_command)
        self.condor = self.account("condor")
        self.before = self.snapshot()

    def find(self, wait):
        end = time.monotonic() + wait
        while True:
            self.agent = next((pid for pid, name, _, _ in processes() if name == "pilot-agent"), 0)
            if self.agent and os.path.exists(self.root("/run/glidepod/exec.sock")):
                break
            if time.monotonic() > end:
                raise RuntimeError("no pilot")
            time.sleep(0.1)
        # HTCondor's pilots are entered through their control group too: it is by that that the agent knows them.
        joins = []
        for line in read(f"/proc/{self.agent}/cgroup").splitlines():
            _, controllers, path = line.split(":", 2)
            names = [controllers.removeprefix("name=")] if controllers else ["unified", ""]
            for name in names:
                file = pathlib.Path("/sys/fs/cgroup") / name / path.lstrip("/") / "cgroup.procs"
                if file.exists():
                    joins.append(str(file))
                    break
        self.enter = ["sh", "-c", 'while [ "$1" != -- ]; do echo 0 >"$1"; shift; done; shift; exec "$@"', "sh", *joins, "--",
                      "nsenter", "--target", str(self.agent), "--mount", "--uts", "--ipc", "--net", "--pid"]

    def root(self, path):
        return f"/proc/{self.agent}/root{path}"

    def account(self, name):
        for line in read(self.root("/etc/passwd")).splitlines():
            fields = line.split(":")
            if fields[0] == name:
                return int(fields[2])
        raise RuntimeError(f"the pilot has no user {name}")

    def glues(self):
        """Process of glue by payload container."""
        all_of_them = processes()
        names = {pid: name for pid, name, _, _ in all_of_them}
        result = {}
        for pid, name, uid, parent in all_of_them:
            if name == "glue" and names.get(parent) != "glue":
                words = read(f"/proc/{pid}/cmdline").split("\0")
                if "--container" in words:
                    result[words[words.index("--container") + 1]] = pid
        return result

    # --- what must be as before ---

    def snapshot(self):
        seen = {}

        def note(path, *, deep=False, but=()):
            try:
                seen[path] = look(self.root(path))
                if not stat.S_ISDIR(os.lstat(self.root(path)).st_mode):
                    return
                for name in sorted(os.listdir(self.root(path))):
                    if not name.startswith(but):
                        note(f"{path}/{name}", deep=deep, but=but) if deep else seen.update({f"{path}/{name}": look(self.root(f"{path}/{name}"))})
            except OSError:
                pass  # gone meanwhile

        note("/glidepod")
        note("/glidepod/bin", deep=True)
        note("/glidepod/run", deep=True, but=("users", ".users"))
        note("/glidepod/scratch", but=("job-", "neighbour-"))
        note("/run/glidepod", but=("status.json", "slots.ads", ".status", ".slots", "users"))
        note("/etc", deep=True, but=("mtab", "resolv.conf"))
        note("/dev/shm")
        note("/tmp")
        return seen

    def changed(self):
        now = self.snapshot()
        for path in now.keys() - self.before.keys():
            if path.rpartition("/")[2] in MOUNT_POINTS and now[path].startswith(EMPTY):
                del now[path]
        # The agent's own access control lists on its folder come and go with pilot jobs.
        return [f"{path} of the pilot was {self.before.get(path, 'not there')}, is {now.get(path, 'gone')}"
                for path in sorted(self.before.keys() | now.keys()) if self.before.get(path) != now.get(path)]

    def left(self):
        """What is there of jobs when none runs."""
        found = [f"process {pid} {name} of user {uid}" for pid, name, uid, _ in processes() if of_jobs(uid)]
        for kind in ("shm", "sem", "msg"):
            table = subprocess.run(["nsenter", "--target", str(self.agent), "--ipc", "cat", f"/proc/sysvipc/{kind}"],
                                   capture_output=True, text=True).stdout.splitlines()
            header = table[0].split() if table else []
            for row in (line.split() for line in table[1:]):
                users = [row[header.index(name)] for name in ("uid", "cuid")]
                if any(of_jobs(int(user)) for user in users):
                    found.append(f"System V {kind} {row[1]} of users {' '.join(users)}")
        for container, pid in self.glues().items():
            root = f"/proc/{pid}/root"
            image = read(f"{root}/etc/image-name").strip()
            places = ["/dev/shm", "/dev/mqueue"] + ([] if image.endswith(("many-folders", "tmp-owned")) else ["/"])
            for place in places:
                found += [f"{path} in {container} ({image})" for path in self.owned(root, place)]
        found += [f"/dev/shm/{name} in the pilot" for name in os.listdir(self.root("/dev/shm"))
                  if of_jobs(os.lstat(self.root(f"/dev/shm/{name}")).st_uid)]
        return found

    @staticmethod
    def owned(root, place):
        """Files of jobs' users below a folder of a container, whose own links are not followed."""
        other = (root + "/proc", root + "/sys", root + "/glidepod") if place == "/" else ()
        for folder, folders, files in os.walk(root + place):
            folders[:] = [name for name in folders if not os.path.join(folder, name).replace("//", "/").startswith(other) or not other]
            for name in folders + files:
                path = os.path.join(folder, name)
                try:
                    if of_jobs(os.lstat(path).st_uid):
                        yield path.removeprefix(root).replace("//", "/")
                except OSError:
                    pass

    def counted(self):
        """What the agent has said since the last look that counts against its pilot."""
        lines = subprocess.run(self.log_command, capture_output=True, text=True, errors="replace").stdout.splitlines()
        fresh, self.log_seen = lines[self.log_seen:], len(lines)
        found = [line for line in fresh if any(f"event={event} " in line or line.endswith(f"event={event}") for event in COUNTED)]
        try:
            status = json.loads(read(self.root("/run/glidepod/status.json"), "{}"))
        except ValueError:
            status = {}
        if status.get("given_up"):
            found.append("it has given up")
        if status.get("failures"):
            found.append(f"{status['failures']} failures in a row")
        return found

    # --- jobs ---

    def sandbox(self, name, uid, owner, pilot=False):
        """A new one, as HTCondor makes it: closed, with the job's ad, which is HTCondor's."""
        path = self.root(f"{SCRATCH}/{name}")
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path, 0o700)
        with open(f"{path}/.job.ad", "w") as ad:
            ad.write(f'User = "{owner}@example.org"\nOwner = "{owner}"\nClusterId = 1\nProcId = {uid % 1000}\nRequestMemory = 64\n'
                     f'RequestDisk = 100000\nGlidepodPilot = {str(pilot).lower()}\n')
        os.chown(f"{path}/.job.ad", self.condor, self.condor)
        for name, content in (("input", "content"), ("secret", "secret")):
            with open(f"{path}/{name}", "w") as file:
                file.write(content)
            os.chmod(f"{path}/{name}", 0o600)
            os.chown(f"{path}/{name}", uid, uid)
        os.mkdir(f"{path}/d")
        os.chown(f"{path}/d", uid, uid)
        os.chown(path, uid, uid)

    def input(self, kind, sandbox):
        """The descriptor that the starter would have opened as a job's standard input, and what is to be kept of it."""
        path = {"null": "/dev/null", "folder": f"{sandbox}/d", "path": "/", "device": "/dev/zero", "file": f"{sandbox}/input",
                "config": "/etc/condor/condor_config"}.get(kind)
        if path:
            return os.open(self.root(path), os.O_PATH if kind == "path" else os.O_RDONLY | os.O_CLOEXEC), None
        return os.pipe()

    def start(self, name, uid, owner, image, verb, kind, other, environment=(), pilot=False):
        """A job by apptainer's own interface, as HTCondor's starter calls it; its process, and the end of its input."""
        sandbox = f"{SCRATCH}/{name}"
        self.sandbox(name, uid, owner, pilot)
        stdin, held = self.input(kind, sandbox)
        command = [*self.enter, "setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "apptainer", "-s", "exec", "-S", "/tmp",
                   "-S", "/var/tmp", "-W", sandbox, "--pwd", sandbox, "-B", sandbox, "--home", sandbox, "-C", image,
                   f"{SCRATCH}/hostile", verb, str(other)]
        process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, start_new_session=True,
                                   env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **dict(environment)})
        os.close(stdin)
        return process, held
