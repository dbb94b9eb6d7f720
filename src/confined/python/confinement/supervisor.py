"""The process between the zygote and a process that may change files, where there are no namespaces. It decides calls
that change modes, owners and times (modes.py), passes signals on, and reports the end, as an init does.

    zygote -- supervisor -- kernel

Each kernel has a supervisor of its own, because a supervisor may wait for a slow disk. It is charged to the kernel's
account. It has the rights of the kernel, but Landlock does not bind it. When it dies, the kernel becomes an orphan,
which the zygote kills.
"""

import os
import signal
import socket
import threading
import traceback

import processes
from confinement import modes, namespaces
from confinement.descriptors import close_all_but
from confinement.syscalls import PR_SET_PDEATHSIG, prctl, set_dumpable


def fork_supervised(link, drop_privileges, places, nice: int) -> socket.socket:
    """In the supervisor: never returns. In the kernel: returns a socket to the supervisor, for hand_over()."""
    signal.pthread_sigmask(signal.SIG_BLOCK, namespaces.WATCHED)
    ours, theirs = socket.socketpair()
    if kernel := os.fork():
        try:
            close_all_but(link, ours.fileno())
            processes.call_this("modes")
            os.nice(nice)
            drop_privileges()  # then it can change only files that the kernel could change by itself
            set_dumpable(False)  # the kernel must not look into it
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if not namespaces.has_reader(link):
                os._exit(1)  # the zygote was gone before that
            threading.Thread(target=decide, args=(ours, places), daemon=True).start()
            namespaces.watch(kernel, link, ends_session=False)
        finally:
            os._exit(70)
    ours.close()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, namespaces.WATCHED)
    return theirs


def hand_over(listener: int, supervisor: socket.socket):
    """
    In the kernel: gives the supervisor the listener of its filter. A process that kept the listener could decide its
    own calls.
    """
    try:
        with supervisor:
            socket.send_fds(supervisor, [b"l"], [listener])
    finally:
        os.close(listener)


def decide(kernel: socket.socket, places):
    """The supervisor's second thread."""
    try:
        with kernel:
            _, listeners, _, _ = socket.recv_fds(kernel, 1, 1)
        for listener in listeners:  # the kernel may have ended before it was confined, and then has sent none
            modes.serve(listener, places)
    except BaseException:
        traceback.print_exc()
        os._exit(70)  # without the supervisor the kernel's calls would wait for ever


def is_possible(drop_privileges) -> bool:
    """
    Returns whether this machine lets a process decide calls of its descendants, which it tries in two processes.
    Linux before 5.0 does not let it, nor do machines where no process may read the memory of another. Below another
    listener, which some containers have, no process can decide calls, either.
    """
    supervisor = os.fork()
    if supervisor == 0:
        code = 1
        try:
            drop_privileges()
            code = _try()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(supervisor, 0)[1]) == 0


def _try() -> int:
    """
    Returns 0 when this process has decided a call of its child. Only then the call fails because the path, which was
    read, is missing.
    """
    from confinement import capabilities, seccomp

    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            set_dumpable(True)
            capabilities.forbid_new_privileges()
            hand_over(seccomp.restrict(seccomp.build(modes="decide"), with_listener=True), theirs)
            os.utime("/troupe/no such folder")
        except FileNotFoundError:  # the supervisor has read the path and looked for it
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 1)
        finally:
            os._exit(1)
    theirs.close()
    with ours:
        _, listeners, _, _ = socket.recv_fds(ours, 1, 1)
    if not listeners:
        return 1
    threading.Thread(target=modes.serve, args=(listeners[0], modes.Places([], [], [], True)), daemon=True).start()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
