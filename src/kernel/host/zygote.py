"""The zygote: one Python process that has marimo loaded and forks a kernel per session. Linux, Python 3.11 or newer.

One JSON document per line:
  stdin   fork, convert, engine, syntax, program, signal, ping: see orders.py. Its end means that the server is gone, and ends
          every kernel.
  stdout  {"op":"hello","marimo","python","supported","missing","threads","confinement","pid","ms"}
          {"op":"preloaded","libraries":[…],"threads","ms"}     everything is loaded; forks worked since hello
          {"op":"pong"}                                          as an answer to ping
          {"op":"forked","id","pid"}   {"op":"refused","id","error"}
          {"op":"exited","id","code","signal","out_of_memory","words"}     words: what it printed before it began to work

It stays single-threaded, runs no user code, and owns every process it forks: it reports how each one ended, and leaves
no descendant of a dead kernel behind. guardian.py does the same for the zygote itself.
"""

import json
import os
import select
import signal
import sys
import time
from collections import deque

import cgroups
import guardian
import processes
from family import Family
from forking import Forks, leave_zygote
from watched_kernels import WatchedKernels

# what notebooks may import from their server: the only modules of ours that they find
NOTEBOOK_MODULES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "notebook_modules")


class Zygote:
    """The loop: reads orders, takes the steps of warm.py when there is nothing else to do, and ends with the server."""

    def __init__(self, lifeline, shield, found, groups, steps, host_modules):
        self.lifeline = lifeline  # readable when the guardian is gone
        self.groups = groups  # where kernels' control groups are made; None: nowhere
        self.steps = deque(steps)
        self.loaded = []
        self.inbox = b""
        self.poll = select.poll()  # unlike select() it takes descriptors beyond the first thousand
        self.wake_r, self.wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.family = Family(self.say, self.poll, self.wake_w)
        self.watching = WatchedKernels(self.family, groups is not None, shield, leave_zygote)
        self.forks = Forks(self.family, self.watching, shield, found, groups, host_modules)
        self.started_at = time.perf_counter()

    def say(self, **message):
        data = json.dumps(message).encode() + b"\n"
        try:
            while data:
                data = data[os.write(1, data) :]
        except BrokenPipeError:
            pass  # the server is gone; the end of stdin comes next

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
            if 0 in ready:
                self.read_orders()
            if not ready and self.steps:
                self.take_step()
            elif not ready:
                self.forks.spares.make()

    def patience_ms(self):
        """Returns how long to wait for something to happen before doing what can wait."""
        if self.steps:
            return 0
        patience = self.forks.spares.patience_s()
        return None if patience is None else patience * 1000

    def read_orders(self):
        data = os.read(0, 1 << 16)
        if not data:
            self.end()
        *lines, self.inbox = (self.inbox + data).split(b"\n")
        for line in lines:
            self.obey(line)

    def obey(self, line):
        import msgspec

        import orders

        try:
            order = orders.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self.say(op="refused", id=find_id(line), error=str(error))
            return
        if isinstance(order, orders.Ping):
            self.say(op="pong")
        elif isinstance(order, orders.Signal):
            self.family.signal(order.id, order.signal)
        else:
            self.forks.start(order, line)

    def reap(self):
        for pid, child in self.family.reap():
            self.forks.spares.forget(pid)
            if pid == self.watching.pid:
                self.watching.restart()
            if child is not None:
                self.watching.forget(child)
                child.close()
                if child.group:
                    self.groups.remove(child.group)
        self.family.kill_orphans(self.watching.pid)

    def end(self):
        """Ends everything that was ever started, then this process."""
        processes.kill_children()
        if self.groups:
            self.groups.remove(*(child.group for child in self.family.children.values() if child.group))
        os._exit(0)

    def take_step(self):
        import warm

        name, step = self.steps.popleft()
        step()
        threads = warm.settle()
        if threads > 1:
            print(f"{name} has left a thread in the zygote: kernels may hang", file=sys.stderr)
        self.loaded.append(name)
        if not self.steps:
            ms = round((time.perf_counter() - self.started_at) * 1000)
            self.say(op="preloaded", libraries=self.loaded, threads=threads, ms=ms)


def find_id(line):
    """Returns the id of an order that could not be read, so that the refusal can name it; None when it has none."""
    try:
        order = json.loads(line)
    except ValueError:
        return None
    return order.get("id") if isinstance(order, dict) else None


def main():
    lifeline, shield = guardian.fork_zygote()
    started_at = time.perf_counter()
    sys.path.append(NOTEBOOK_MODULES)
    import marimo

    import compatibility
    import warm
    from confinement import describe, detect

    supported = compatibility.is_supported()
    missing = [] if supported else compatibility.find_missing()
    host_modules = []
    if not missing:
        import admission
        import bridge
        import code_mode
        import compiling
        import console
        import convert  # noqa: F401  found before sys.path changes
        import engine  # noqa: F401
        import graph_scans
        import interrupts
        import kernel_process
        import markdown_cells
        import orders  # noqa: F401
        import program  # noqa: F401
        import shown_output
        import syntax  # noqa: F401
        import unencodable
        from troupe import workers

        admission.install()
        workers.install()
        bridge.install()
        code_mode.install()
        compiling.install()
        console.install()
        graph_scans.install()
        interrupts.install()
        markdown_cells.install()
        shown_output.install()
        unencodable.install()
        host_modules = kernel_process.find_host_modules()
        # not for notebooks to import from
        sys.path[:] = [path for path in sys.path if os.path.abspath(path) != kernel_process.HOST]
    steps = [] if missing else warm.plan(os.environ.get("TROUPE_PRELOAD", warm.LIBRARIES))
    wanted = json.loads(os.environ.get("TROUPE_CONFINEMENT", "{}"))  # what all kernels are to have
    found = detect.detect(wanted.get("uid"))
    groups = None if "cgroups" in detect.switched_off() else cgroups.find()
    zygote = Zygote(lifeline, shield, found, groups, steps, host_modules)
    zygote.say(
        op="hello",
        marimo=marimo.__version__,
        marimo_dir=os.path.dirname(marimo.__file__),
        python=sys.version.split()[0],
        supported=supported and not missing,
        missing=missing,
        threads=warm.settle(),
        confinement=describe.describe(found, wanted.get("network", "open"), wanted.get("uid"), groups is not None),
        pid=os.getpid(),
        ms=round((time.perf_counter() - started_at) * 1000),
    )
    zygote.serve()


if __name__ == "__main__":
    main()
