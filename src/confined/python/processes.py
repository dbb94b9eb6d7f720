"""Processes: the name and the standard streams of this one, its children, and their end."""

import encodings.ascii  # imported early, because it is needed at the death of the zygote, when no module should be loaded
import os
import signal

from confinement.syscalls import PR_SET_NAME, prctl


def children() -> list[int]:
    """Returns the pids of this process's own children, including orphans that it has inherited."""
    try:
        with open("/proc/thread-self/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:  # a kernel built without CONFIG_PROC_CHILDREN, or a sandbox
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) == os.getpid()]


def descendants(pid: int) -> list[int]:
    """Returns the pids of all processes below this one, as far as they can be followed while they change."""
    found, left = [], [pid]
    while left:
        below = _children_of(left.pop())
        found += below
        left += below
    return found


def _children_of(pid) -> list[int]:
    try:
        lists = [f"/proc/{pid}/task/{task}/children" for task in os.listdir(f"/proc/{pid}/task")]
    except (FileNotFoundError, ProcessLookupError):
        return []
    found = []
    for path in lists:
        try:
            with open(path, encoding="ascii") as file:
                found += map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):  # the thread has ended
            continue
    return found


def _parent(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def exit_code(status: int) -> int | None:
    """Returns how a child ended, as `os.waitstatus_to_exitcode` does, or None when it has not
    ended. The status is not always an end: a child that asks to be traced by its parent is
    reported each time that it stops."""
    has_ended = os.WIFEXITED(status) or os.WIFSIGNALED(status)
    return os.waitstatus_to_exitcode(status) if has_ended else None


def kill_children():
    """
    Kills every child, and every orphan that this process then adopts, until only children of other users are left.
    Blocks until the killed processes are reaped.
    """
    while True:
        found = children()
        if found and not any([kill_tree(pid) for pid in found]):
            return
        try:
            os.waitpid(-1, 0 if found else os.WNOHANG)
        except ChildProcessError:
            return


def kill_tree(pid: int) -> bool:
    """Sends SIGKILL to a child of this process and to the process group that it leads. Returns False when the child
    belongs to another user, such as a process of a set-uid program."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # the process leads no group, or has ended
            pass
        except PermissionError:
            return False
    return True


def call_this(name: str):
    """Sets the name of this process in `ps` and `top`: "troupe-" and the name, 15 bytes in all."""
    prctl(PR_SET_NAME, f"troupe-{name}".encode())


def silence_stdio(*descriptors: int):
    """Replaces the given standard streams by /dev/null."""
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(null, descriptor)
    os.close(null)
