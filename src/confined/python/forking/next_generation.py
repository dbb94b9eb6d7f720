"""
The next generation of the zygote. Importing libraries takes seconds, in steps that cannot be divided, and an
importing process cannot fork meanwhile. So the zygote forks a process that loads them while the zygote goes on. Once
it has them, it carries out the orders for new processes, and the first generation passes on orders and reports.

The first generation stays: the server, the guardian and the kernels that it has forked depend on it. When either
generation ends, everything ends.
"""

import os
import select
import sys
import threading
import time
import traceback
from contextlib import suppress

import processes
import reports
from confinement import syscalls
from forking import warm

NICENESS = 10
END_S = 1.0  # how long the next generation may take to end its kernels in order


class NextGeneration:
    """The first generation's record of the next. While its queue holds orders, the first generation reads no more of
    them."""

    def __init__(self, pid, orders, reports_):
        self.pid = pid
        self.orders = orders  # the write end of its stdin
        self.reports = reports_  # the read end of its stdout
        self.has_loaded = False
        self.queue = bytearray()
        self.inbox = b""
        os.set_blocking(orders, False)

    def give(self, line):
        """Passes on an order."""
        self.queue += line
        self.queue += b"\n"
        self.flush()

    def flush(self):
        """Writes as much of the queue as the pipe takes."""
        with suppress(BlockingIOError, BrokenPipeError):  # a broken pipe means that the process has ended, which is noticed when it is reaped
            while self.queue:
                del self.queue[: os.write(self.orders, self.queue)]

    def pass_on_reports(self) -> bool:
        """Passes on its reports. Returns False at their end. The first report says that it has loaded all libraries."""
        data = os.read(self.reports, 1 << 16)
        lines, end, self.inbox = (self.inbox + data).rpartition(b"\n")
        if end:
            self.has_loaded = True
            reports.write(lines + end)
        return data != b""

    def end(self):
        """Lets the next generation end its kernels. Returns when it has, or after a second."""
        os.close(self.orders)
        poll = select.poll()
        poll.register(self.reports, select.POLLIN)
        deadline = time.monotonic() + END_S
        while (left := deadline - time.monotonic()) > 0 and poll.poll(left * 1000):
            if not os.read(self.reports, 1 << 16):
                return


def fork_next(libraries: list[str], live) -> NextGeneration:
    """Forks a process that loads the libraries, reports that, and then runs `live`. Raises OSError when that is impossible."""
    orders, orders_end = os.pipe2(os.O_CLOEXEC)
    reports_, reports_end = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            processes.call_this("preload")
            os.dup2(orders, 0)
            os.dup2(reports_end, 1)
            for descriptor in (orders, orders_end, reports_, reports_end):
                os.close(descriptor)
            syscalls.become_subreaper()
            syscalls.set_dumpable(False)
            load(libraries)
            live()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(70)
    os.close(orders)
    os.close(reports_end)
    return NextGeneration(pid, orders_end, reports_)


def load(libraries: list[str]):
    """Imports the libraries and reports that. Uses only spare processor time: in a thread, because each thread has a
    priority of its own, and the priority of a process cannot be raised again without privileges."""
    began_at = time.perf_counter()
    thread = threading.Thread(target=import_niced, args=(libraries,))
    thread.start()
    thread.join()
    # a thread that Python has joined may still be ending
    while os.path.exists(f"/proc/self/task/{thread.native_id}"):
        time.sleep(0.001)
    threads = warm.settle()
    if threads > 1:
        print("a library has left a thread behind: kernels may hang", file=sys.stderr)
    ms = round((time.perf_counter() - began_at) * 1000)
    reports.say(op="preloaded", libraries=libraries, threads=threads, pid=os.getpid(), ms=ms)


def import_niced(libraries):
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        for name in libraries:
            warm.import_library(name)
        warm.import_exports()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)
