#!/usr/bin/env python3
"""Looks at every descriptor, working directory and root of every process of a job, where all of them are seen.

Usage: doors.py [--quiet] [PID...]   as root; by default the processes of all payload containers of this machine.

What a process holds is a way to where it was opened. So each must be a pipe, a socket or the like, which are nowhere;
lie in a mount of the process's own container; or be a file that is found in that container, the very same, under the
name that it has (HTCondor's starter opens a job's streams in the pilot container, on the volume that both have);
or /dev/null. Whatever else is printed, a line each.

Exit: 0 none leads out; 1 some do; 2 there is no process to look at.
"""
import os
import stat
import sys

JOB_USERS = range(20001, 60000)  # of slots, of tests and of pilot jobs' jobs
NOWHERE = ("pipe:[", "socket:[", "anon_inode:", "/memfd:", "/dev/zero (deleted)")
NULL = os.makedev(1, 3)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def user_of(pid):
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith("Uid:"):
            return int(line.split()[1])
    return 0


def processes_of_jobs():
    """Those in the mount namespaces that have a glue, but for glue itself."""
    spaces, users = set(), {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            space = os.readlink(f"/proc/{pid}/ns/mnt")
            if read(f"/proc/{pid}/comm").strip() == "glue" and user_of(pid) not in JOB_USERS:
                spaces.add(space)
            if user_of(pid) in JOB_USERS:
                users[pid] = space
        except OSError:
            continue  # it has ended
    return [pid for pid, space in users.items() if space in spaces]


def mount_of(path):
    """The mount that it lies in, by its number, and what it is."""
    fd = os.open(path, os.O_PATH)
    try:
        for line in read(f"/proc/self/fdinfo/{fd}").splitlines():
            if line.startswith("mnt_id:"):
                return int(line.split()[1]), os.fstat(fd)
    finally:
        os.close(fd)
    raise OSError("no mount")


def same(one, other):
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def leads_out(pid, path, name, own_mounts):
    if name.startswith(NOWHERE):
        return False
    mount, what = mount_of(path)
    if mount in own_mounts or (stat.S_ISCHR(what.st_mode) and what.st_rdev == NULL):
        return False
    if not (stat.S_ISREG(what.st_mode) or stat.S_ISFIFO(what.st_mode)):
        return True
    try:
        return not same(what, os.lstat(f"/proc/{pid}/root{name}"))
    except OSError:
        return True


def look_at(pid):
    """How many there are, and those that lead out."""
    own_mounts = {int(line.split()[0]) for line in read(f"/proc/{pid}/mountinfo").splitlines()}
    paths = [f"/proc/{pid}/cwd", f"/proc/{pid}/root"]
    paths += [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
    found = []
    for path in paths:
        try:
            name = os.readlink(path)
            if leads_out(pid, path, name, own_mounts):
                found.append(f"{path} -> {name} leads out of its container ({read(f'/proc/{pid}/comm').strip()})")
        except OSError:
            continue  # closed meanwhile
    return len(paths), found


def main():
    arguments = sys.argv[1:]
    quiet = "--quiet" in arguments
    pids = [pid for pid in arguments if pid != "--quiet"] or processes_of_jobs()
    looked, doors, at = 0, [], 0
    for pid in pids:
        try:
            number, found = look_at(pid)
        except OSError:
            continue  # it has ended
        looked, at, doors = looked + 1, at + number, doors + found
    for door in doors:
        print(f"   {door}")
    if not quiet:
        print(f"   {looked} processes of jobs, {at} descriptors and folders, {len(doors)} lead out")
    return 1 if doors else 0 if looked else 2


if __name__ == "__main__":
    sys.exit(main())
