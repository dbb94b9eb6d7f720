"""A session's namespaces, and its init.

    zygote -- init (pid 1 of the session) -- kernel (pid 2)
              mounts; reaps orphans;         gives up privileges, Landlock, seccomp, then marimo
              its end ends all of them

A kernel that was pid 1 itself would ignore its own SIGKILL, and its children would take it for a dead parent. The
zygote clones init into its namespaces by one system call: to fork a process that unshares, forks and exits costs as
much again as the whole start.
"""

import ctypes
import fcntl
import os
import re
import select
import signal
import socket
import struct

import processes
from confinement.descriptors import close_all_but
from confinement.syscalls import MACHINE, NUMBERS, PR_SET_PDEATHSIG, prctl, set_dumpable

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
SET_INTERFACE_FLAGS, UP, RUNNING = 0x8914, 0x1, 0x40
RESERVED_PIDS = 300  # Linux gives out no pid below this a second time, so a lower limit has no effect
holding_libc = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock during a call
WATCHED = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM}


def clone(with_user: bool, with_network: bool) -> int:
    """Works like os.fork(), but the child is the first process of new namespaces. Only for a
    process with one thread.
    """
    flags = NEWNS | NEWPID | NEWIPC | (NEWUSER if with_user else 0) | (NEWNET if with_network else 0)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = holding_libc.syscall(*map(ctypes.c_long, (NUMBERS["clone"][MACHINE], flags | signal.SIGCHLD, 0, 0, 0, 0)))
    code = ctypes.get_errno()
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(code, os.strerror(code), "clone")
    return pid


def settle_in(with_user: bool, uid: int, gid: int):
    """
    Called in init before anything else: leads a session, and maps the ids of init in its user namespace to
    themselves. Without these maps every process sees both ids as 65534, and no file can be made. No process may trace
    init, now or later.
    """
    os.setsid()
    if not with_user:
        return
    set_dumpable(True)  # otherwise /proc/self would belong to root and the maps could not be written
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    set_dumpable(False)


def bring_loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_INTERFACE_FLAGS, struct.pack("16sH14x", b"lo", UP | RUNNING))


def counts_pids() -> bool:
    """
    Returns whether each pid namespace has a highest pid of its own. Older systems have one for the whole machine.
    """
    major, minor = re.match(r"(\d+)\.(\d+)", os.uname().release).groups()
    return (int(major), int(minor)) >= (6, 14)


def limit_pids(processes: int):
    """Limits the processes of root, to whom RLIMIT_NPROC does not apply. Needs a /proc of its own;
    only where counts_pids().
    """
    with open("/proc/sys/kernel/pid_max", "w", encoding="ascii") as file:
        file.write(str(processes + RESERVED_PIDS))


def fork_kernel(link, drop_privileges):
    """In init: watches the kernel and never returns. In the kernel: returns."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    if kernel := os.fork():
        try:
            # The kernel's descriptors must be closed when the kernel ends, because the server waits
            # for the end of its socket.
            close_all_but(link)
            processes.call_this("init")
            drop_privileges()
            set_dumpable(False)  # the kernel must not look into init
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # ends init with the zygote; a change of uid would have cleared this
            if not has_reader(link):
                os._exit(1)  # the zygote was gone before that
            watch(kernel, link, ends_session=True)
        finally:
            os._exit(70)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)


def has_reader(link) -> bool:
    """Returns whether the zygote still listens at the other end of the pipe."""
    poll = select.poll()
    poll.register(link, 0)
    return not poll.poll(0)


def watch(kernel, link, ends_session: bool):
    """Passes signals on and reaps orphans; ends with the kernel. `ends_session`: this process is pid 1 of its namespace, so
    that its end is the end of every process of the session."""
    while True:
        number = signal.sigwait(WATCHED)
        if number != signal.SIGCHLD:
            try:
                os.killpg(kernel, number)  # the child's group exists once marimo has called setsid
            except ProcessLookupError:
                pass
            continue
        while (dead := _reap())[0]:
            pid, status = dead
            code = processes.exit_code(status)
            if code is None:  # a traced child would stop at every signal, and init would have to continue it
                os.kill(pid, signal.SIGKILL)
            elif pid == kernel:
                if ends_session:
                    _end_session()
                os.write(link, struct.pack("i", code))
                os._exit(0)


def _end_session():
    """Kills all processes of the session before its end is reported. The end of pid 1 would kill them too, but later."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _reap():
    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return 0, 0
