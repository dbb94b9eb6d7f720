"""A control group for each kernel, on machines that allow one. It counts the memory that is really in use, by all
processes of a kernel together, with their files in /tmp and /dev/shm; rlimits count the reserved memory of each
process. Without control groups, memory_watch.py counts instead.

Version 2: the group above the server's has to be delegated to the server, with the memory controller (systemd:
Delegate=cpu memory, DelegateSubgroup=server). Before systemd 254, the server's own group is delegated (Delegate=cpu
memory alone). A process may divide only a group that is delegated to it. Version 1: the server's group has to be
writable, as it is for root.

In version 2 groups also have weights of processor time where the controller for it is delegated. The server decides about
them (processor-shares.ts), because it knows which kernels work. A group is never moved below one of its workspace: a
spare has joined its group before its workspace is known.
"""

import contextlib
import os
import re
from itertools import count

PREFIX = "troupe-"
# In version 2 a group with processes of its own cannot be divided, so they are moved into a group of this name.
LEAF = "troupe-server"
CONTROLLER = "memory"
PROCESSORS = "cpu"
WEIGHT_FILE = "cpu.weight"
# The weight of processor time of a workspace, from 1 to 10,000, and of each new group. A hundred busy kernels of one
# workspace still divide it well. The server has ten times this weight, because niceness has no effect between groups.
WEIGHT = 1000
SERVER_WEIGHT = 10_000
# Processes can start others while they are moved, so the move is repeated up to this many times.
ROUNDS = 20
# A process may reserve this multiple of its group's limit. One request far beyond the limit is
# still a MemoryError of the cell, while memory that is reserved and not used, such as the stacks of
# threads, counts for little.
RESERVED = 2


class Group:
    """The control group of one kernel, or of processes that share one limit. Made before the fork, joined by the child, removed
    when every process in it is gone."""

    def __init__(self, path, files):
        self.path, self.files = path, files
        self.reopen()

    def reopen(self):
        """Called in the parent, before it forks another process that joins."""
        self.procs = os.open(os.path.join(self.path, "cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC)

    def join(self):
        """Called in the child, before it does anything that takes memory."""
        os.write(self.procs, b"0")
        os.close(self.procs)

    def forked(self):
        """Called in the parent after the fork. Closes the descriptor."""
        os.close(self.procs)

    def weigh(self, weight: int):
        """Sets the weight of processor time. Ignored when the group is gone."""
        with contextlib.suppress(OSError):
            write(os.path.join(self.path, WEIGHT_FILE), str(weight))

    def has_killed(self) -> bool:
        """Returns whether a process in it was killed because the group was full."""
        try:
            with open(os.path.join(self.path, self.files.events), encoding="ascii") as file:
                return bool(re.search(r"^oom_kill [1-9]", file.read(), re.MULTILINE))
        except OSError:
            return False

    def remove(self) -> bool:
        """Removes the group. Returns False while a process is still in it."""
        try:
            os.rmdir(self.path)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return True


class Files:
    """The names that one version has for the files of a group."""

    def __init__(self, limits, events):
        self.limits, self.events = limits, events


VERSION_1 = Files(("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), "memory.oom_control")
VERSION_2 = Files(("memory.max", "memory.swap.max"), "memory.events")


class Groups:
    """Makes groups below `base`, and knows those that could not be removed yet. `weight`: of processor time, that new groups
    get; None where groups have no weights."""

    def __init__(self, base, files, weight=None):
        self.base, self.files, self.weight = base, files, weight
        self.names = (f"{PREFIX}{os.getpid()}-{number}-{pid_namespace()}" for number in count())
        self.left = []

    def make(self, memory_bytes: int) -> Group:
        """Raises OSError when the system refuses."""
        path = os.path.join(self.base, next(self.names))
        os.mkdir(path)
        try:
            for name, value in zip(self.files.limits, self._values(memory_bytes)):
                target = os.path.join(path, name)
                if name == self.files.limits[0] or os.path.exists(target):  # there may be no swap to count
                    write(target, value)
            if self.weight is not None:
                write(os.path.join(path, WEIGHT_FILE), str(self.weight))
            return Group(path, self.files)
        except OSError:
            os.rmdir(path)
            raise

    def _values(self, memory_bytes):
        """Returns the limit of memory and the limit of swap. In version 1 the second limit includes
        the memory.
        """
        return str(memory_bytes), str(memory_bytes) if self.files is VERSION_1 else "0"

    def remove(self, *groups):
        self.left = [group for group in (*self.left, *groups) if not group.remove()]

    def sweep(self):
        """Removes groups that kernel hosts left behind. Hosts in other PID namespaces are not in our /proc, so their groups stay:
        a new one has no process yet, and its kernel would fail to join it."""
        namespace = pid_namespace()
        for name in os.listdir(self.base) if namespace else ():
            owner = re.fullmatch(rf"{PREFIX}(\d+)-\d+-{namespace}", name)
            if owner and not os.path.exists(f"/proc/{owner[1]}"):
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(self.base, name))


def pid_namespace() -> int:
    """Returns the number of this process's PID namespace, which tells hosts with the same pid apart; 0 without /proc."""
    with contextlib.suppress(OSError):
        return os.stat("/proc/self/ns/pid").st_ino
    return 0


def find() -> Groups | None:
    """Returns where groups can be made, or None. Tries it by making a group and removing it."""
    for base, files in candidates():
        groups = Groups(base, files, WEIGHT if files is VERSION_2 and favour_server(base) else None)
        try:
            groups.sweep()
            group = groups.make(1 << 30)
        except OSError:
            continue
        group.forked()
        groups.remove(group)
        return groups
    return None


def candidates():
    """Yields (the place where groups could be made, the version)."""
    ours = dict(line.rstrip("\n").split(":", 2)[1:] for line in read_lines("/proc/self/cgroup"))
    for kind, controllers, root, mounted in mounts():
        if kind == "cgroup2" and "" in ours:
            own = os.path.normpath(os.path.join(mounted, os.path.relpath(ours[""], root)))
            delegated = next((path for path in (os.path.dirname(own), own) if is_delegated(path)), None)
            if delegated is not None and (delegated != own or vacate(own)) and divide(delegated):
                yield delegated, VERSION_2
        elif kind == "cgroup" and "memory" in controllers:
            names = next((names for names in ours if "memory" in names.split(",")), None)
            if names is not None:
                yield os.path.normpath(os.path.join(mounted, os.path.relpath(ours[names], root))), VERSION_1


def is_delegated(path) -> bool:
    """Returns whether systemd has marked the group as delegated."""
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(path, name) == b"1":
                return True
    return False


def vacate(path) -> bool:
    """
    Moves the processes of a group (the server, this host, and programs started with them) into a group below it. In
    version 2, a group that has processes of its own cannot be divided. Returns whether no process is left.
    """
    if CONTROLLER not in words(path, "cgroup.controllers"):
        return False
    leaf = os.path.join(path, LEAF)
    try:
        os.makedirs(leaf, exist_ok=True)
        for _ in range(ROUNDS):
            pids = words(path, "cgroup.procs")
            if not pids:
                return True
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    write(os.path.join(leaf, "cgroup.procs"), pid)
    except OSError:  # the group belongs to another user; 0 is a process of another PID namespace
        pass
    return False


def favour_server(base) -> bool:
    """Gives the server's group more processor time than the groups of kernels, and returns whether that was possible. Without it
    groups have no weights: they would take the processors away from the server."""
    if not divide(base, PROCESSORS):
        return False
    with contextlib.suppress(OSError):
        for path in (entry.path for entry in os.scandir(base) if entry.is_dir()):
            if str(os.getpid()) in words(path, "cgroup.procs"):
                write(os.path.join(path, WEIGHT_FILE), str(SERVER_WEIGHT))
                return True
    with contextlib.suppress(OSError):
        write(os.path.join(base, "cgroup.subtree_control"), f"-{PROCESSORS}")
    return False


def divide(path, controller=None) -> bool:
    """
    Returns whether groups below this one have a controller; without a name, the one of memory. Switches the
    controller on where that is allowed.
    """
    controller = controller or CONTROLLER
    try:
        if controller not in words(path, "cgroup.subtree_control"):
            write(os.path.join(path, "cgroup.subtree_control"), f"+{controller}")
    except OSError:  # the group belongs to another user, or lacks the controller, or has processes of its own
        return False
    return True


def words(path, name):
    return " ".join(read_lines(os.path.join(path, name))).split()


def mounts():
    """Yields (type, controllers, root, place) of each mounted hierarchy."""
    for line in read_lines("/proc/self/mountinfo"):
        fields, _, more = line.partition(" - ")
        kind, _, options = more.split(maxsplit=2)
        if kind in ("cgroup", "cgroup2"):
            root, place = fields.split()[3:5]
            yield kind, options.strip().split(","), root, place


def read_lines(path):
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        return file.readlines()
    return []


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
