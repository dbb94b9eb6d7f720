"""seccomp: system calls that no notebook needs, and stand-ins for layers that this machine lacks. Binds this thread and
its children."""

import ctypes
import errno
import functools
import socket
import struct

from confinement.syscalls import MACHINE, NUMBERS, PR_SET_SECCOMP, prctl

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
AUDIT_ARCH = (0xC000003E, 0xC00000B7)  # x86_64, aarch64
X32_BIT = 0x40000000
NEW_NAMESPACE = 0x7E020000  # every CLONE_NEW* flag
LOAD, JUMP_EQUAL, JUMP_NOT_LESS, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
NEVER = """setns bpf perf_event_open userfaultfd add_key request_key keyctl
    io_uring_setup io_uring_enter io_uring_register""".split()
# Other families reach the machine beneath a virtual one past every network namespace, or old code of the system.
LOCAL, INTERNET = (socket.AF_UNIX, socket.AF_NETLINK), (socket.AF_INET, socket.AF_INET6)
TO_A_PROCESS = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
FILTER_MODE = 2


def step(what, value, if_true=0, if_false=0):
    """One BPF instruction; the last two: how many to skip."""
    return struct.pack("<HBBI", what, if_true, if_false, value & 0xFFFFFFFF)


def give(code: int):
    return step(RETURN, ERRNO | code)


def on(name, *body):
    """The body is executed for that system call, and must return."""
    return [step(JUMP_EQUAL, NUMBERS[name][MACHINE], 0, len(body)), *body]


@functools.cache  # in the zygote, so that no kernel waits for it
def build(shield=(), no_truncate=False, no_network=False, no_ptrace=False) -> bytes:
    """The program. `shield`: process and group ids that may not be signalled, nor any process be limited from
    outside."""
    program = [
        step(LOAD, ARCHITECTURE), step(JUMP_EQUAL, AUDIT_ARCH[MACHINE], 1, 0), give(errno.ENOSYS),
        step(LOAD, NUMBER), step(JUMP_NOT_LESS, X32_BIT, 0, 1), give(errno.ENOSYS),
    ]  # fmt: skip
    denied = [*NEVER, *(["truncate"] if no_truncate else []), *(["ptrace", "process_vm_writev"] if no_ptrace else [])]
    for name in denied:
        program += on(name, give(errno.EPERM))
    program += on("clone3", give(errno.ENOSYS))  # its flags are out of a filter's reach; libc then uses clone
    for name in ("clone", "unshare"):
        flags = step(LOAD, FIRST_ARGUMENT), step(JUMP_ANY_BIT, NEW_NAMESPACE, 0, 1)
        program += on(name, *flags, give(errno.EPERM), step(RETURN, ALLOW))
    families = LOCAL if no_network else (*LOCAL, *INTERNET)
    known = [step(JUMP_EQUAL, family, len(families) - n, 0) for n, family in enumerate(families)]
    program += on("socket", step(LOAD, FIRST_ARGUMENT), *known, give(errno.EACCES), step(RETURN, ALLOW))
    if shield:
        program += _shield([*(number for id in shield for number in (id, -id)), -1])
    program.append(step(RETURN, ALLOW))
    return b"".join(program)


def _shield(targets):
    program = []
    for name in TO_A_PROCESS:
        checks = [step(JUMP_EQUAL, target, len(targets) - n, 0) for n, target in enumerate(targets)]
        program += on(name, step(LOAD, FIRST_ARGUMENT), *checks, step(RETURN, ALLOW), give(errno.EPERM))
    for name in ("tkill", "pidfd_open"):  # take ids of threads, which are not known
        program += on(name, give(errno.EPERM))
    itself = step(JUMP_EQUAL, 0, 0, 1)
    return program + on("prlimit64", step(LOAD, FIRST_ARGUMENT), itself, step(RETURN, ALLOW), give(errno.EPERM))


def restrict(program: bytes):
    """Needs no_new_privs."""
    instructions = ctypes.create_string_buffer(program)
    header = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions))
    prctl(PR_SET_SECCOMP, FILTER_MODE, ctypes.create_string_buffer(header))
