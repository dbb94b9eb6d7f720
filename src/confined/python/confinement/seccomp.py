"""
seccomp: refuses system calls that no notebook needs, and replaces layers that this machine lacks. Binds this thread
and its children.
"""

import ctypes
import errno
import functools
import os
import socket
import stat
import struct

from confinement import modes as file_modes
from confinement.syscalls import MACHINE, NUMBERS, PR_SET_SECCOMP, prctl, syscall

ALLOW, ERRNO, NOTIFY = 0x7FFF0000, 0x00050000, 0x7FC00000
AUDIT_ARCH = (0xC000003E, 0xC00000B7)  # x86_64, aarch64
X32_BIT = 0x40000000
NEW_NAMESPACE = 0x7E020000  # every CLONE_NEW* flag
LOAD, JUMP_EQUAL, JUMP_NOT_LESS, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE = 0, 4
ARGUMENT = (16, 24, 32, 40)  # the lower half of each argument: flags, modes and ids need no more
NEVER = """setns bpf perf_event_open userfaultfd add_key request_key keyctl
    io_uring_setup io_uring_enter io_uring_register memfd_secret
    ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd""".split()
# Calls for memory that no process has to map. Without a control group such memory would not be
# counted.
HOLD_MEMORY = ("memfd_create", "shmget")
# These clone flags would make the new process a child of the caller's parent, or let the parent trace it. The parent
# is the zygote.
TO_THE_PARENT = 0x8000 | 0x2000
SET_ID_BITS = stat.S_ISUID | stat.S_ISGID
MODE_OF = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
FLAGS_AND_MODE_OF = {"open": (1, 2), "openat": (2, 3)}
MAKES_A_FILE = os.O_CREAT | (os.O_TMPFILE & ~os.O_DIRECTORY)  # else an open has no mode
# Other address families lead past every network namespace to the host of a virtual machine, or into
# old code of the kernel.
LOCAL, INTERNET = (socket.AF_UNIX, socket.AF_NETLINK), (socket.AF_INET, socket.AF_INET6)
# A socket with SO_REUSEPORT joins the listening sockets of other programs of this user, and a BPF
# program gives it all their connections. Setting the option succeeds without effect: programs that
# always set it then have a port alone, or learn from bind that the port is taken. io_uring, the
# other way to a socket's options, is refused as a whole.
SHARE_A_PORT, STEER_CONNECTIONS = 15, (51, 52, 68)  # SO_ATTACH_REUSEPORT_CBPF, _EBPF, SO_DETACH_REUSEPORT_BPF
TO_A_PROCESS = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
SCHEDULING = ("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler")
PRIORITY = {"setpriority": 0, "ioprio_set": 1}  # with the first argument that means one process
# The commands, of fcntl and of ioctl, that set the process to signal when a file becomes ready.
SET_OWNER = {"fcntl": (8, 15), "ioctl": (0x8901, 0x8902)}
FILTER_MODE, SET_FILTER, NEW_LISTENER = 2, 1, 1 << 3


def step(code, value, if_true=0, if_false=0):
    """Returns one BPF instruction. The last two arguments say how many instructions to skip."""
    return struct.pack("<HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


def give(code: int):
    return step(RETURN, ERRNO | code)


def load(argument: int):
    return step(LOAD, ARGUMENT[argument])


def on(name, *body):
    """Returns a rule whose body is executed for that system call. The body must end in a return. The rule is
    empty where the machine has no such call.
    """
    number = NUMBERS[name][MACHINE]
    return [] if number is None else [step(JUMP_EQUAL, number, 0, len(body)), *body]


def deny_bits(bits, otherwise=step(RETURN, ALLOW)):
    """Ends a rule: EPERM when the loaded argument has any of the bits."""
    return step(JUMP_ANY_BIT, bits, 0, 1), give(errno.EPERM), otherwise


def deny_values(values):
    """Ends a rule: fails with EPERM when the loaded argument is one of the given values."""
    checks = [step(JUMP_EQUAL, value, len(values) - n, 0) for n, value in enumerate(values)]
    return *checks, step(RETURN, ALLOW), give(errno.EPERM)


@functools.cache  # in the zygote, so that no kernel waits for it
def build(shield=(), no_truncate=False, no_network=False, no_held_memory=False, own_network=False, modes=None) -> bytes:
    """
    Returns the program. `shield`: process and group ids that may not be signalled; if there are any, no other process
    may be limited or slowed down. `no_held_memory`: refuses memory that a process can keep without mapping it.
    `own_network`: the network has no ports of other programs, so processes may share ports. `modes`: for calls that
    change modes, owners and times of files, "decide" asks the listener, and "refuse" refuses them. None allows them,
    where they can change only files that the process may write anyway.
    """
    program = [
        step(LOAD, ARCHITECTURE), step(JUMP_EQUAL, AUDIT_ARCH[MACHINE], 1, 0), give(errno.ENOSYS),
        step(LOAD, NUMBER), step(JUMP_NOT_LESS, X32_BIT, 0, 1), give(errno.ENOSYS),
    ]  # fmt: skip
    denied = [*NEVER, *(["truncate"] if no_truncate else []), *(HOLD_MEMORY if no_held_memory else [])]
    for name in denied:
        program += on(name, give(errno.EPERM))
    for name in ("clone3", "openat2"):  # a filter cannot see the arguments of these calls; callers fall back to older calls
        program += on(name, give(errno.ENOSYS))
    program += on("clone", load(0), *deny_bits(NEW_NAMESPACE | TO_THE_PARENT))
    program += on("unshare", load(0), *deny_bits(NEW_NAMESPACE))
    verdict = {"decide": step(RETURN, NOTIFY), "refuse": give(errno.EPERM), None: step(RETURN, ALLOW)}[modes]
    for name, mode in MODE_OF.items():
        otherwise = verdict if name in file_modes.DECIDED else step(RETURN, ALLOW)
        program += on(name, load(mode), *deny_bits(SET_ID_BITS, otherwise))
    if modes:
        for name in file_modes.DECIDED.keys() - MODE_OF.keys():
            program += on(name, verdict)
        for name in file_modes.REFUSED:
            program += on(name, give(file_modes.REFUSAL))
    refused_ioctls = [*(SET_OWNER["ioctl"] if shield else ()), *(file_modes.REFUSED_IOCTLS.values() if modes else ())]
    if refused_ioctls:
        program += on("ioctl", load(1), *deny_values(refused_ioctls))
    for name, (flags, mode) in FLAGS_AND_MODE_OF.items():
        has_mode = step(JUMP_ANY_BIT, MAKES_A_FILE, 1, 0), step(RETURN, ALLOW)
        program += on(name, load(flags), *has_mode, load(mode), *deny_bits(SET_ID_BITS))
    families = LOCAL if no_network else (*LOCAL, *INTERNET)
    known = [step(JUMP_EQUAL, family, len(families) - n, 0) for n, family in enumerate(families)]
    program += on("socket", load(0), *known, give(errno.EACCES), step(RETURN, ALLOW))
    if not own_network:
        program += on("setsockopt", *_keep_ports_apart())
    if shield:
        program += _shield(shield)
    program.append(step(RETURN, ALLOW))
    return b"".join(program)


def _keep_ports_apart():
    other_level = step(JUMP_EQUAL, socket.SOL_SOCKET, 1, 0), step(RETURN, ALLOW)
    ignored = step(JUMP_EQUAL, SHARE_A_PORT, 0, 1), give(0)
    return load(1), *other_level, load(2), *ignored, *deny_values(STEER_CONNECTIONS)


def _shield(ids):
    program = []
    for name in TO_A_PROCESS:
        program += on(name, load(0), *deny_values([*(number for id in ids for number in (id, -id)), -1]))
    # These calls take thread ids, which the filter cannot know, or a handle of a process, such as its folder in
    # /proc.
    for name in ("tkill", "pidfd_open", "pidfd_send_signal"):
        program += on(name, give(errno.EPERM))
    program += on("fcntl", load(1), *deny_values(SET_OWNER["fcntl"]))
    # A filter does not know the processes that the server starts later. So a thread may change these properties only
    # for itself.
    itself = step(JUMP_EQUAL, 0, 0, 1), step(RETURN, ALLOW), give(errno.EPERM)
    for name in (*SCHEDULING, "prlimit64"):
        program += on(name, load(0), *itself)
    for name, of_one in PRIORITY.items():
        others = load(0), step(JUMP_EQUAL, of_one, 1, 0), give(errno.EPERM)
        program += on(name, *others, load(1), *itself)
    return program


def restrict(program: bytes, with_listener=False) -> int | None:
    """
    Needs no_new_privs. `with_listener`: returns a descriptor, on which the calls arrive that the program leaves to
    the listener.
    """
    instructions = ctypes.create_string_buffer(program)
    header = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions))
    if with_listener:
        return syscall("seccomp", SET_FILTER, NEW_LISTENER, ctypes.create_string_buffer(header))
    prctl(PR_SET_SECCOMP, FILTER_MODE, ctypes.create_string_buffer(header))
    return None
