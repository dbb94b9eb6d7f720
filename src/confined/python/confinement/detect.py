"""Finds the layers that this machine offers, once, in the zygote before the first fork. Namespaces are tried for real,
in a child (4 ms), and so is a change of user.

TROUPE_CONFINE_WITHOUT=namespaces,landlock,seccomp,cgroups (any of them, or landlock:2 for a kernel whose newest ABI is
2) simulates a machine that lacks them, so that tests see the fallbacks.
"""

import json
import os
import socket
import sys

from confinement import capabilities, landlock, namespaces, supervisor, views
from confinement.syscalls import MACHINE


class Found:
    """The layers of confinement that a kernel on this machine can have."""

    def __init__(self, ids, landlock_abi, seccomp, without_namespaces_why, notes=(), uid_why=None, counts_pids=False, decides_modes=False):
        # the server's user and group: in a user namespace without id maps both are 65534
        self.uid, self.gid = ids
        self.root = self.uid == 0  # the server runs as root, so kernels need no user namespace
        self.landlock = landlock_abi  # the version of Landlock's ABI; 0 without Landlock
        self.seccomp = seccomp
        self.namespaces = without_namespaces_why is None
        self.why = without_namespaces_why
        self.notes = notes  # sentences about the parts of the view of the disk that this machine cannot give
        self.uid_why = uid_why  # why kernels cannot have the uid of the setting; None when they can
        self.counts_pids = counts_pids  # whether the processes of a session can be limited, even root's
        # whether a supervisor can decide about modes and times of files; only where there are no namespaces
        self.decides_modes = decides_modes


def switched_off() -> list[str]:
    return os.environ.get("TROUPE_CONFINE_WITHOUT", "").split(",")


def detect(uid: int | None = None) -> Found:
    """Returns the layers of this machine. `uid`: the user for kernels of a server that runs as root."""
    without = switched_off()
    newest = min([int(name.removeprefix("landlock:")) for name in without if name.startswith("landlock:")] or [99])
    views.find_foreign()  # the result is remembered here, so that children need not repeat it
    ids = os.geteuid(), os.getegid()
    tried = {"why": "switched off"} if "namespaces" in without else try_namespaces(*ids, uid)
    if tried["why"] is not None:
        tried = {"why": tried["why"], "uid_why": "there are no namespaces"}
    abi = 0 if "landlock" in without else min(landlock.find_abi(), newest)
    seccomp = MACHINE is not None and "seccomp" not in without
    why = tried.pop("why")
    decides_modes = seccomp and why is not None and supervisor.is_possible(capabilities.drop_capabilities if ids[0] == 0 else lambda: None)
    return Found(ids, abi, seccomp, why, decides_modes=decides_modes, **tried)


def try_namespaces(uid, gid, kernel_uid) -> dict:
    """Returns members of Found, and the reason why there can be no namespaces, or None. `uid` and `gid`: of the server."""
    root = uid == 0
    if MACHINE is None:
        return {"why": "unknown machine"}
    ours, theirs = socket.socketpair()
    try:
        pid = namespaces.clone(with_user=not root, with_network=True)
    except OSError as error:
        return {"why": f"clone: {error.strerror}"}
    if pid == 0:
        try:
            namespaces.settle_in(not root, uid, gid)
            notes = views.build([], views.find_python(), [], 1, of_root=views.OF_ROOT if root else ())
            counts_pids = bool(root and not notes and namespaces.counts_pids() and can_write_pid_max())
            if root and not notes:
                views.close_proc()
            uid_why = find_obstacle(kernel_uid) if root and kernel_uid else None
            found = {"why": None, "notes": notes, "uid_why": uid_why, "counts_pids": counts_pids}
            theirs.send(json.dumps(found).encode())
        except OSError as error:
            theirs.send(json.dumps({"why": f"{error.filename or 'mount'}: {error.strerror}"}).encode())
        finally:
            os._exit(0)
    theirs.close()
    os.waitpid(pid, 0)
    answer = ours.recv(4096)
    ours.close()
    return json.loads(answer) if answer else {"why": "the view of the disk cannot be built"}


def can_write_pid_max():
    try:
        namespaces.limit_pids(1024)
    except OSError:  # a container may make /proc/sys read-only
        return False
    return True


def find_obstacle(uid):
    """
    Changes this process to that user, who must be able to run this Python. Returns a sentence about the obstacle, or
    None.
    """
    capabilities.become(uid)
    for path in dict.fromkeys([sys.executable, os.__file__, *filter(os.path.isabs, sys.path)]):
        try:
            os.close(os.open(path, os.O_RDONLY))
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"cannot read {path}: {error.strerror}"
    return None
