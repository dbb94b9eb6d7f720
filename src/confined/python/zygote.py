"""The zygote: one Python process that has marimo loaded and forks a kernel per session. Linux, Python 3.11 or newer.

One JSON document per line:
  stdin   fork, convert, engine, syntax, install, program, signal, weigh, ping: see orders.py. Its end means that the server is gone, and ends
          every kernel. So does its silence for TROUPE_LEASE_S seconds, if that variable is set. A line of more than 64 KiB is refused.
  stdout  {"op":"hello","marimo","python","supported","missing","threads","confinement","weight","pid","ms"}
          {"op":"preloaded","libraries":[…],"threads","pid","ms"}   the next generation has the libraries; forks work since
                                                                 hello. pid: of the process that forks from now on
          {"op":"pong"}                                          as an answer to ping
          {"op":"forked","id","pid","init"}   {"op":"refused","id","error"}     init: whether it is the init of its namespaces
          {"op":"exited","id","code","signal","out_of_memory","words"}     words: its output before it began to work

It stays single-threaded when it forks, runs no user code, and owns every process it forks: it reports how each one ended, and leaves
no descendant of a dead kernel behind. guardian.py does the same for the zygote itself.
"""

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from math import inf

import guardian
import processes
import reports
from forking import cgroups, warm
from forking.family import Family
from forking.forks import Forks, leave_zygote
from forking.inbox import MAX_ORDER_BYTES, Inbox
from forking.lease import Lease
from forking.next_generation import fork_next
from forking.watched_kernels import WatchedKernels

# the modules that notebooks may import from their server: the only modules of Troupe on their path
NOTEBOOK_MODULES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "notebook_modules")


class Zygote:
    """The main loop: reads orders, forks, and ends with the server. Once there is a next
    generation, lets it fork.
    """

    def __init__(self, lifeline, shield, found, groups, host_modules):
        self.lifeline = lifeline  # readable when the guardian is gone
        self.shield = shield  # ids of processes and groups that kernels may not signal
        self.found, self.host_modules = found, host_modules
        self.groups = groups  # the folder in which kernels' control groups are made, or None
        self.next = None  # the next generation
        self.inbox = Inbox(0)
        self.lease = Lease.of_environment()
        self.poll = select.poll()  # unlike select() it takes descriptors beyond the first thousand
        self.wake_r, self.wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.family = Family(reports.say, self.poll, self.wake_w)
        self.watching = WatchedKernels(self.family, groups is not None, shield, leave_zygote)
        self.forks = Forks(self.family, self.watching, shield, found, groups, host_modules, self.inbox)

    def preload(self, libraries):
        """Begins to load libraries in the next generation."""
        if not libraries:
            reports.say(op="preloaded", libraries=[], threads=warm.count_threads(), pid=os.getpid(), ms=0)
            return
        try:
            self.next = fork_next(libraries, self.live_on)
        except OSError as error:  # the system has no process or memory left
            print(f"libraries are not preloaded: {error}", file=sys.stderr)
            return
        self.shield.add(self.next.pid)
        self.poll.register(self.next.reports, select.POLLIN)

    def live_on(self):
        """Runs in the next generation, once it has the libraries."""
        for descriptor in (self.wake_r, self.wake_w):
            os.close(descriptor)
        shield = self.shield | {os.getpid()}
        Zygote(self.lifeline, shield, self.found, self.groups, self.host_modules).serve()

    def serve(self):
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self.end())
        signal.set_wakeup_fd(self.wake_w, warn_on_full_buffer=False)
        for descriptor in (0, self.wake_r, self.lifeline):
            self.poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in self.poll.poll(self.patience_ms())}
            if self.lifeline in ready:
                self.end()
            if self.wake_r in ready:
                os.read(self.wake_r, 4096)
                self.reap()
            self.family.listen(ready)
            self.watching.listen(ready)
            if self.next:
                self.mediate(ready)
            if 0 in ready:
                self.lease.renew()
                self.read_orders()
            elif self.lease.left_s() <= 0:
                print("nothing was heard from the server for too long: all kernels end", file=sys.stderr)
                self.end()
            if not ready:
                self.forks.make_spares()

    def patience_ms(self):
        """Returns how long to wait for events before the work that can wait, or the check of the lease, is due."""
        waits = [self.forks.spare_patience_s(), self.lease.left_s()]
        patience = min((wait for wait in waits if wait is not None), default=inf)
        return None if patience == inf else max(0, patience) * 1000

    def mediate(self, ready):
        """Passes on reports of the next generation, and orders that waited for it."""
        if self.next.orders in ready:
            self.next.flush()
            if not self.next.queue:
                self.poll.unregister(self.next.orders)
                self.poll.register(0, select.POLLIN)
        if self.next.reports in ready and not self.next.pass_on_reports():
            self.poll.unregister(self.next.reports)  # the process has ended; `reap` handles that
        if self.next.has_loaded:
            self.forks.drop_spares()

    def read_orders(self):
        if not self.inbox.read():
            self.end()
        for line in self.inbox.lines():
            if line is None:
                reports.say(op="refused", id=None, error=f"an order of more than {MAX_ORDER_BYTES} bytes")
            elif self.next and self.next.has_loaded:
                self.hand_over(line)
            else:
                self.obey(line)
        if self.next and self.next.queue:
            self.poll.unregister(0)  # until the next generation has taken the queued orders
            self.poll.register(self.next.orders, select.POLLOUT)

    def hand_over(self, line):
        """Gives an order to the next generation, except for signals to kernels that were forked
        before. Each generation sets the weights of its own kernels.
        """
        from forking import orders

        order = orders.find_for_kernels(line)
        if isinstance(order, orders.Signal) and self.family.has(order.id):
            self.family.signal(order.id, order.signal)
            return
        if isinstance(order, orders.Weigh):
            self.family.weigh(order.weights)
        self.next.give(line)

    def obey(self, line):
        import msgspec

        from forking import orders

        try:
            order = orders.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reports.say(op="refused", id=find_id(line), error=str(error))
            return
        if isinstance(order, orders.Ping):
            reports.say(op="pong")
        elif isinstance(order, orders.Signal):
            self.family.signal(order.id, order.signal)
        elif isinstance(order, orders.Weigh):
            self.family.weigh(order.weights)
        else:
            self.forks.start(order)

    def reap(self):
        for pid, child in self.family.reap():
            self.forks.forget_spare(pid)
            if pid == self.watching.pid:
                self.watching.restart()
            if self.next and pid == self.next.pid:
                self.lose_next()
            if child is not None:
                child.close()
                self.forks.bury(pid, child)
        self.family.kill_orphans({self.watching.pid, self.next and self.next.pid})

    def lose_next(self):
        """Called when the next generation has ended. If it had kernels, this host ends with it.
        Otherwise this generation continues without the libraries."""
        if self.next.has_loaded:
            self.end()
        print("libraries are not preloaded: the process that was to load them has ended", file=sys.stderr)
        self.shield.discard(self.next.pid)
        with suppress(KeyError):  # the end of its reports was noticed first
            self.poll.unregister(self.next.reports)
        os.close(self.next.orders)
        os.close(self.next.reports)
        self.next = None

    def end(self):
        """Ends every process that was started from here, then this process."""
        if self.next:
            self.next.end()
        processes.kill_children()
        if self.groups:
            self.groups.remove(*(child.group for child in self.family.children.values() if child.group))
        os._exit(0)


def find_id(line):
    """Returns the id of an order that could not be read, so that the refusal can name it; None when it has none."""
    try:
        order = json.loads(bytes(line))
    except ValueError:
        return None
    return order.get("id") if isinstance(order, dict) else None


def main():
    lifeline, shield = guardian.fork_zygote()
    started_at = time.perf_counter()
    sys.path.append(NOTEBOOK_MODULES)
    import marimo

    import compatibility
    from confinement import describe, detect

    supported = compatibility.is_supported()
    missing = [] if supported else compatibility.find_missing()
    host_modules = []
    if not missing:
        from children import installer, program, syntax  # noqa: F401  found before sys.path changes
        from conversion import convert  # noqa: F401
        from engines import engine  # noqa: F401
        from forking import orders  # noqa: F401
        from kernel import (
            bridge,
            code_mode,
            compiling,
            console,
            control_queue,
            graph_scans,
            interrupts,
            kernel_process,
            markdown_cells,
            run_hooks,
            unencodable,
        )
        from outputs import sendable, shown_output
        from troupe import workers

        run_hooks.install()
        sendable.install()
        workers.install()
        bridge.install()
        code_mode.install()
        compiling.install()
        console.install()
        control_queue.install()
        graph_scans.install()
        interrupts.install()
        markdown_cells.install()
        shown_output.install()
        unencodable.install()
        host_modules = kernel_process.find_host_modules()
        # Notebooks must not import modules of this host.
        sys.path[:] = [path for path in sys.path if os.path.abspath(path) != kernel_process.HOST]
        warm.prepare()
    wanted = json.loads(os.environ.get("TROUPE_CONFINEMENT", "{}"))  # the confinement wanted for all kernels
    found = detect.detect(wanted.get("uid"))
    groups = None if "cgroups" in detect.switched_off() else cgroups.find()
    weight = groups and groups.weight
    reports.say(
        op="hello",
        marimo=marimo.__version__,
        marimo_dir=os.path.dirname(marimo.__file__),
        python=sys.version.split()[0],
        supported=supported and not missing,
        missing=missing,
        threads=warm.settle(),
        confinement=describe.describe(found, wanted.get("network", "open"), wanted.get("uid"), groups is not None, weight is not None),
        weight=weight,
        layers={
            "namespaces": found.namespaces,
            "landlock": found.landlock,
            "seccomp": found.seccomp,
            "uid": wanted.get("uid") if found.root and found.uid_why is None else None,
        },
        pid=os.getpid(),
        ms=round((time.perf_counter() - started_at) * 1000),
    )
    zygote = Zygote(lifeline, shield, found, groups, host_modules)
    if not missing:
        zygote.preload(os.environ.get("TROUPE_PRELOAD", warm.LIBRARIES).split())
    zygote.serve()


if __name__ == "__main__":
    main()
