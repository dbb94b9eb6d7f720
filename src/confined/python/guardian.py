"""
The guardian: the process that the server starts. It forks the zygote, and makes sure that no process outlives the
zygote.

    server -- guardian -- zygote -- kernels

When the zygote dies, even of kill -9, its orphans become the guardian's children, and the guardian kills them with
all that they have started. When the guardian dies, the zygote sees the end of their pipe and ends all kernels itself.
SIGINT is ignored, because a terminal sends it to the server as well. SIGTERM ends the zygote in order, and kills it
if it does not end, for example because it is stopped.
"""

import os
import signal
from contextlib import suppress

import processes
from confinement import descriptors, syscalls

ZYGOTE_END_S = 3  # how long the zygote may take to end its kernels in order


def fork_zygote() -> tuple[int, set[int]]:
    """Returns in the zygote, never in the guardian: the end of a pipe that becomes readable when the guardian has gone,
    and the process and group ids of server, guardian and zygote, which no kernel may signal."""
    descriptors.close_all_but()  # descriptors that the server or its parent has left open
    server = os.getppid()
    syscalls.become_subreaper()
    syscalls.set_dumpable(False)  # no process of the same user may look into either
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lifeline, ours = os.pipe2(os.O_CLOEXEC)
    zygote = os.fork()
    if zygote == 0:
        processes.call_this("zygote")
        os.close(ours)
        syscalls.become_subreaper()
        syscalls.set_dumpable(False)
        ours = {server, os.getppid(), os.getpid()}
        return lifeline, ours | {os.getpgid(pid) for pid in ours}
    os.close(lifeline)
    processes.silence_stdio(0, 1)  # the server takes the end of the zygote's stdout as the end of the zygote
    processes.call_this("guardian")
    try:
        _watch(zygote, ours)
    finally:
        os._exit(70)


def _watch(zygote, lifeline):
    lifelines = [lifeline]  # the first SIGTERM empties this, so that a second one does nothing

    def end(*_):
        if lifelines:
            os.close(lifelines.pop())
            signal.alarm(ZYGOTE_END_S)

    def kill(*_):
        with suppress(ProcessLookupError):
            os.kill(zygote, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, kill)
    code = None
    while code is None:
        pid, status = os.wait()
        if pid == zygote:
            code = processes.exit_code(status)
    signal.alarm(0)
    processes.kill_children()
    os._exit(code if code >= 0 else 128 - code)
