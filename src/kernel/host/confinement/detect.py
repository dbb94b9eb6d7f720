"""What this machine offers, found out once in the zygote before the first fork. Namespaces are tried for real, in a
child (4 ms).

TROUPE_CONFINE_WITHOUT=namespaces,landlock,seccomp (any of them, or landlock:2 for a kernel whose newest ABI is 2) plays
a machine that lacks them, so that tests see the fallbacks.
"""

import json
import os
import socket

from confinement import landlock, namespaces, views
from confinement.syscalls import MACHINE


class Found:
    """The layers that a kernel on this machine can have."""

    def __init__(self, root, landlock_abi, seccomp, without_namespaces_why, notes):
        self.root = root  # the server runs as root: namespaces without that of users
        self.landlock = landlock_abi  # 0: none
        self.seccomp = seccomp
        self.namespaces = without_namespaces_why is None
        self.why = without_namespaces_why
        self.notes = notes  # what the view of the disk lacks here, for people


def detect() -> Found:
    without = os.environ.get("TROUPE_CONFINE_WITHOUT", "").split(",")
    newest = min([int(name.removeprefix("landlock:")) for name in without if name.startswith("landlock:")] or [99])
    root = os.geteuid() == 0
    why, notes = ("switched off", []) if "namespaces" in without else try_namespaces(root)
    abi = 0 if "landlock" in without else min(landlock.find_abi(), newest)
    return Found(root, abi, MACHINE is not None and "seccomp" not in without, why, notes)


def try_namespaces(root):
    """(why they cannot be had, or None; notes about the view)."""
    if MACHINE is None:
        return "unknown machine", []
    ours, theirs = socket.socketpair()
    uid, gid = os.geteuid(), os.getegid()
    try:
        pid = namespaces.clone(with_user=not root, with_network=True)
    except OSError as error:
        return f"clone: {error.strerror}", []
    if pid == 0:
        try:
            namespaces.settle_in(not root, uid, gid)
            theirs.send(json.dumps([None, views.build([], [], [], 1)]).encode())
        except OSError as error:
            theirs.send(json.dumps([f"{error.filename or 'mount'}: {error.strerror}", []]).encode())
        finally:
            os._exit(0)
    theirs.close()
    os.waitpid(pid, 0)
    answer = ours.recv(4096)
    ours.close()
    return tuple(json.loads(answer)) if answer else ("the view of the disk cannot be built", [])
