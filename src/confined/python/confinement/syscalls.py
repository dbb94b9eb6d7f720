"""Linux system calls that the standard library lacks, by ctypes. Numbers for x86_64 and aarch64."""

import ctypes
import errno
import os
import platform

libc = ctypes.CDLL(None, use_errno=True)
MACHINE = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
# The numbers of system calls on x86_64 and aarch64. None: aarch64 does not have the call.
NUMBERS = {
    "add_key": (248, 217), "bpf": (321, 280), "capset": (126, 91), "chmod": (90, None), "chown": (92, None), "clone": (56, 220),
    "clone3": (435, 435), "creat": (85, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "fchown": (93, 55),
    "fchownat": (260, 54), "file_setattr": (469, 469), "fremovexattr": (199, 16), "fsetxattr": (190, 7), "futimesat": (261, None),
    "fcntl": (72, 25), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "io_uring_setup": (425, 425),
    "ioctl": (16, 29), "ioprio_set": (251, 30), "kcmp": (312, 272), "keyctl": (250, 219), "kill": (62, 129),
    "landlock_add_rule": (445, 445), "landlock_create_ruleset": (444, 444), "landlock_restrict_self": (446, 446),
    "lchown": (94, None), "lremovexattr": (198, 15), "lsetxattr": (189, 6),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "mknod": (133, None), "mknodat": (259, 33),
    "mount_setattr": (442, 442), "open": (2, None), "openat": (257, 56), "openat2": (437, 437),
    "perf_event_open": (298, 241), "pidfd_getfd": (438, 438), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "prlimit64": (302, 261), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "ptrace": (101, 117), "removexattr": (197, 14), "removexattrat": (466, 466), "request_key": (249, 218), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "sched_setaffinity": (203, 122), "sched_setattr": (314, 274),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "seccomp": (317, 277), "setns": (308, 268), "setpriority": (141, 140),
    "setsockopt": (54, 208), "setxattr": (188, 5), "setxattrat": (463, 463), "shmget": (29, 194), "socket": (41, 198), "tgkill": (234, 131), "tkill": (200, 130),
    "truncate": (76, 45), "unshare": (272, 97), "userfaultfd": (323, 282),
    "utime": (132, None), "utimensat": (280, 88), "utimes": (235, None),
}  # fmt: skip

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_READ, PR_CAPBSET_DROP = 1, 4, 22, 23, 24
PR_SET_NAME, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 15, 36, 38


def call(function, *args) -> int:
    """Calls a libc function. A negative result becomes an OSError that names the function."""
    result = function(*[ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args])
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), getattr(function, "__name__", None))
    return result


def syscall(name: str, *args) -> int:
    """Calls the kernel by number. Raises ENOSYS on a machine whose numbers are not known."""
    if MACHINE is None:
        raise OSError(errno.ENOSYS, f"no system call numbers for {platform.machine()}", name)
    try:
        return call(libc.syscall, NUMBERS[name][MACHINE], *args)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None


def prctl(option: int, *args) -> int:
    return call(libc.prctl, option, *args, *[0] * (4 - len(args)))


def become_subreaper():
    """Makes orphaned descendants of this process its children, instead of children of init."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def set_dumpable(dumpable: bool):
    """Sets whether other processes of this user may trace this one and read its memory, environment and open files."""
    prctl(PR_SET_DUMPABLE, int(dumpable))
