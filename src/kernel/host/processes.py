"""Children of this process: who they are, and their end."""

import os
import signal


def children() -> list[int]:
    """Pids of this process's own children, orphans that it has inherited among them."""
    try:
        with open("/proc/thread-self/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:  # a kernel built without CONFIG_PROC_CHILDREN, or a sandbox
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) == os.getpid()]


def _parent(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def kill_children():
    """Kills every child, and every orphan that becomes one by that, until there is none. Blocks until they are
    reaped."""
    while True:
        for pid in children():
            kill_tree(pid)
        try:
            os.wait()
        except ChildProcessError:
            return


def kill_tree(pid: int):
    """SIGKILL for a child of ours and the process group that it leads."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it leads no group, or it is gone
            pass


def silence_stdio(*descriptors: int):
    """Puts /dev/null in the place of the given standard streams."""
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(null, descriptor)
    os.close(null)
