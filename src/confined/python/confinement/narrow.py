"""
Confines a process that needs only one folder. Its confinement is narrower than that of a kernel: it cannot use the
rest of the disk, new sockets, other programs or processes. Binds the calling thread and its children. Call it after
Confinement.finish(), when everything outside of the folder is loaded.
"""

import errno
import functools

from confinement import landlock
from confinement.seccomp import (
    ALLOW,
    ARCHITECTURE,
    AUDIT_ARCH,
    JUMP_ANY_BIT,
    JUMP_EQUAL,
    LOAD,
    NUMBER,
    RETURN,
    give,
    load,
    restrict,
    step,
)
from confinement.syscalls import MACHINE

# numbers for (x86_64, aarch64); None: that machine has no such call
NEVER = {
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242), "execve": (59, 221), "execveat": (322, 281), "fork": (57, None),
    "vfork": (58, None), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "kcmp": (312, 272), "chmod": (90, None), "fchmod": (91, 52),
    "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None), "lchown": (94, None), "fchown": (93, 55),
    "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "link": (86, None),
    "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36), "mknod": (133, None), "mknodat": (259, 33),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, None), "mkdirat": (258, 34),
    "chroot": (161, 51), "mount": (165, 40), "unshare": (272, 97), "setns": (308, 268),
}  # fmt: skip
CLONE, CLONE_THREAD = (56, 220), 0x10000


def narrow(found, readable, folder, writes):
    """Confines to `folder` and the paths in `readable`. `found`: the layers that this machine has. `writes`: whether
    `folder` may be written."""
    if found.landlock:
        ruleset = landlock.Ruleset(found.landlock, has_tcp_ports=False)
        ruleset.allow(landlock.READ, readable)
        ruleset.allow(landlock.WRITE if writes else landlock.READ, [folder])
        ruleset.enforce()
    if found.seccomp:
        restrict(build())


@functools.cache
def build() -> bytes:
    """Returns a seccomp program in which the refused calls fail, and `clone` can make only threads.
    """
    program = [
        step(LOAD, ARCHITECTURE), step(JUMP_EQUAL, AUDIT_ARCH[MACHINE], 1, 0), give(errno.ENOSYS),
        step(LOAD, NUMBER),
    ]  # fmt: skip
    for numbers in NEVER.values():
        if numbers[MACHINE] is not None:
            program += [step(JUMP_EQUAL, numbers[MACHINE], 0, 1), give(errno.EPERM)]
    thread = load(0), step(JUMP_ANY_BIT, CLONE_THREAD, 1, 0), give(errno.EPERM)
    program += [step(JUMP_EQUAL, CLONE[MACHINE], 0, len(thread)), *thread]
    program.append(step(RETURN, ALLOW))
    return b"".join(program)
