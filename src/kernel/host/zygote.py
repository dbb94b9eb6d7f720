"""The zygote: one Python process that has marimo loaded and forks a kernel per session. Linux, Python 3.11 or newer.

One JSON document per line:
  stdin   fork, convert, engine, syntax, program, signal: see orders.py. Its end means that the server is gone, and ends
          every kernel.
  stdout  {"op":"hello","marimo","python","supported","missing","threads","confinement","ms"}
          {"op":"preloaded","libraries":[…],"threads","ms"}     everything is loaded; forks worked since hello
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
import traceback
from collections import deque
from contextlib import suppress
from itertools import count, islice

import cgroups
import guardian
import processes
from child import Child, open_words
from confinement import descriptors
from memory_watch import MemoryWatch
from spare import Policy, Spares

# what notebooks may import from their server: the only modules of ours that they find
NOTEBOOK_MODULES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "notebook_modules")
MAX_ENDS_AT_ONCE = 256  # so that children which end without pause keep no order waiting


class Zygote:
    """The loop, and all that it owns."""

    def __init__(self, lifeline, shield, found, groups, steps, host_modules):
        self.lifeline = lifeline  # readable when the guardian is gone
        self.shield = shield  # process and group ids that kernels may not signal
        self.found = found  # the layers of confinement that this machine has
        self.groups = groups  # where kernels' control groups are made; None: nowhere
        self.steps = deque(steps)  # of warm.py, taken when there is nothing else to do
        self.loaded = []
        self.host_modules = host_modules
        self.inbox = b""
        self.children = {}  # pid -> Child
        self.doomed = set()  # pids of orphans that were killed and are not reaped yet
        self.links = {}  # link -> Child, until it was heard
        self.spares = Spares(self.clone_spare)
        self.watch = None  # counts memory where there are no control groups, from the first kernel on
        self.keys = count(1)  # by which the watch knows kernels: unlike pids they are used once
        self.poll = select.poll()  # unlike select() it takes descriptors beyond the first thousand
        self.wake_r, self.wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
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
            if not ready.isdisjoint(self.links):
                self.listen(ready)
            if self.watch and self.watch.socket.fileno() in ready:
                self.end_exceeding()
            if 0 in ready:
                self.read_orders()
            if not ready and self.steps:
                self.take_step()
            elif not ready:
                self.spares.make()

    def patience_ms(self):
        """How long to wait for something to happen before doing what can wait."""
        if self.steps:
            return 0
        patience = self.spares.patience_s()
        return None if patience is None else patience * 1000

    def read_orders(self):
        data = os.read(0, 1 << 16)
        if not data:
            self.end()
        *lines, self.inbox = (self.inbox + data).split(b"\n")
        for line in lines:
            self.obey(line)

    def end(self):
        """Everything that we ever started ends before we do."""
        processes.kill_children()
        if self.groups:
            self.groups.remove(*(child.group for child in self.children.values() if child.group))
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

    def obey(self, line):
        import msgspec

        import orders

        try:
            order = orders.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self.say(op="refused", id=find_id(line), error=str(error))
            return
        if isinstance(order, orders.Signal):
            for pid, child in self.children.items():
                if child.id == order.id:
                    child.signal(pid, order.signal)
            return
        if self.is_watched(order.memory) and self.watch is None:
            self.start_watch()
        confinement = self.confine(order, getattr(order, "cwd", None))
        if not isinstance(order, orders.Fork):
            self.fork(order, self.run_other, confinement)
        elif confinement is None or not self.found.namespaces:
            self.fork(order, self.run_kernel, confinement)
        else:
            policy = Policy(order.confine, order.memory)
            if not self.use_spare(policy, order, line):
                self.fork(order, self.run_kernel, confinement)
            self.spares.expect(policy)

    def confine(self, order, work):
        """`order`: or a policy, which says the same of confinement and memory."""
        from confinement.session import Confinement

        if order.confine is None:
            return None
        return Confinement(self.found, order.confine, work, self.shield, self.is_watched(order.memory))

    def is_watched(self, memory) -> bool:
        return bool(memory and not self.groups)

    def watched(self, order):
        """What the memory watch has to know of a child; None when it does not watch it."""
        if not self.is_watched(order.memory):
            return None
        has_init = order.confine is not None and self.found.namespaces
        return next(self.keys), order.memory, (order.confine.tmp_mb << 20) if has_init else 0

    def start_watch(self):
        """Makes it watch every kernel that there is. Without a process for it kernels start all the same."""
        with suppress(OSError):
            self.watch = MemoryWatch(self.leave)
            self.shield.add(self.watch.pid)
            self.poll.register(self.watch.socket, select.POLLIN)
        for pid, child in self.children.items():
            self.begin_watching(pid, child)

    def begin_watching(self, pid, child):
        if self.watch and child.watched and child.id is not None:
            key, limit, tmp_bytes = child.watched
            self.watch.add(key, pid, limit, tmp_bytes)

    def end_exceeding(self):
        """Kills kernels that use too much memory and says so at once: the system takes long to give that much back, and
        the end of the kernel's socket may be seen before."""
        for key in self.watch.exceeded():
            for pid, child in self.children.items():
                if child.watched and child.watched[0] == key:
                    child.exceeds = True
                    child.signal(pid, signal.SIGKILL)
                    self.report(child, -signal.SIGKILL)

    def lose_watch(self):
        self.shield.discard(self.watch.pid)
        self.poll.unregister(self.watch.socket)
        self.watch.close()
        self.watch = None
        self.start_watch()

    def clone_spare(self, policy, control, await_order):
        """Pid of an init that has nothing to do yet; see spare.py. It keeps the descriptor `control`."""
        link, theirs = os.pipe2(os.O_CLOEXEC)
        words, group = open_words(), None
        try:
            group = self.groups.make(policy.memory) if self.groups and policy.memory else None
            pid = self.confine(policy, None).fork()
        except OSError:
            close(link, theirs, words)
            self.discard(group)
            raise
        if pid == 0:
            kept = (theirs, control)
            self.live(group, words, kept, lambda: self.become_kernel(policy, group, theirs, await_order))
        close(theirs)
        if group:
            group.forked()
        self.children[pid] = Child(None, link, group, words, self.watched(policy))
        return pid

    def become_kernel(self, policy, group, link, await_order):
        import orders

        prepared = self.confine(policy, None).prepare()
        order = within(orders.decode(await_order()), group)
        confinement = self.confine(order, order.cwd)
        confinement.ruleset = prepared
        self.run_kernel(order, time.perf_counter(), confinement, link)

    def use_spare(self, policy, order, line) -> bool:
        """False when there is none that fits, or when it cannot be used."""
        spare = self.spares.take(policy)
        if spare is None:
            return False
        try:
            spare.give(line)
        except OSError:
            return False
        finally:
            spare.control.close()
        child = self.children[spare.pid]
        child.id = order.id
        self.follow(spare.pid, child)
        return True

    def discard(self, group):
        """One that nobody has joined."""
        if group:
            group.forked()
            self.groups.remove(group)

    def fork(self, order, become, confinement):
        forked_at = time.perf_counter()
        link, theirs = os.pipe2(os.O_CLOEXEC) if confinement and self.found.namespaces else (None, None)
        words, group = open_words(), None
        try:
            group = self.groups.make(order.memory) if self.groups and order.memory else None
            pid = confinement.fork() if confinement else os.fork()
        except OSError as error:  # no more processes or memory
            self.say(op="refused", id=order.id, error=str(error))
            close(link, theirs, words)
            self.discard(group)
            return
        if pid == 0:
            self.live(group, words, (theirs,), lambda: become(within(order, group), forked_at, confinement, theirs))
        close(theirs)
        if group:
            group.forked()
        child = self.children[pid] = Child(order.id, link, group, words, self.watched(order))
        self.follow(pid, child)

    def live(self, group, words, kept, life):
        """In a child: lives with standard input, output and error and the descriptors in `kept`. Never comes back."""
        try:
            processes.call_this("starting")  # before it differs from the zygote in anything else
            os.dup2(words, 2)
            if group:
                group.join()
            self.leave()
            descriptors.close_all_but(*kept)
            life()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(70)

    def follow(self, pid, child):
        if child.link is not None:
            self.links[child.link] = child
            self.poll.register(child.link, select.POLLIN)
        self.begin_watching(pid, child)
        self.say(op="forked", id=child.id, pid=pid)

    def leave(self):
        """In a child: lets go of the zygote's signals and of its connection to the server."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        processes.silence_stdio(0, 1)

    def run_kernel(self, order, forked_at, confinement, link):
        import kernel_process

        kernel_process.run(order, forked_at, self.host_modules, confinement, link)

    def run_other(self, order, forked_at, confinement, link):
        import convert
        import engine
        import orders
        import program
        import syntax

        lives = {
            orders.Convert: convert,
            orders.Engine: engine,
            orders.JudgeSyntax: syntax,
            orders.RunProgram: program,
        }
        lives[type(order)].run(order, confinement, link)

    def listen(self, ready):
        """To give back an init's memory takes the system as long as the kernel's did: nobody has to wait for that."""
        for link in ready.intersection(self.links):
            self.hear(link)

    def hear(self, link):
        self.poll.unregister(link)
        child = self.links.pop(link)
        code = child.code_from_init()
        if code is not None:
            self.report(child, code)

    def report(self, child, code):
        """Once: what init said comes before how init itself ended."""
        if not child.has_ended and child.id is not None:
            child.has_ended = True
            number = -code if code < 0 else None
            is_full = number == signal.SIGKILL and child.is_out_of_memory()
            words = child.read_words()
            self.say(op="exited", id=child.id, code=max(code, 0), signal=number, out_of_memory=is_full, words=words)

    def reap(self):
        ended = list(islice(reaped(), MAX_ENDS_AT_ONCE))
        for pid, status in ended:
            code = processes.exit_code(status)
            if code is None:  # it asked to be traced by us, and we would have to let it go on after every signal
                processes.kill_tree(pid)
            else:
                self.bury(pid, code)
        if len(ended) == MAX_ENDS_AT_ONCE:
            with suppress(BlockingIOError):  # full, which wakes us as well
                os.write(self.wake_w, b"\0")  # come back, after the orders that wait
        # what a dead kernel left behind (setsid, double fork) has become our child
        for pid in processes.children():
            if pid not in self.children and pid not in self.doomed and not self.is_watch(pid):
                self.doomed.add(pid)
                processes.kill_tree(pid)  # its SIGCHLD brings us back here, for its own children

    def is_watch(self, pid) -> bool:
        return self.watch is not None and self.watch.pid == pid

    def bury(self, pid, code):
        """Forgets a child that has ended and reports its end."""
        self.doomed.discard(pid)
        self.spares.forget(pid)
        if self.is_watch(pid):
            self.lose_watch()
        if child := self.children.pop(pid, None):
            if child.link in self.links:
                self.hear(child.link)
            self.report(child, code)
            if self.watch and child.watched:
                self.watch.forget(child.watched[0])
            child.close()
            if child.group:
                self.groups.remove(child.group)


def within(order, group):
    """What its group counts for all processes of a kernel together, each of them may reserve more of."""
    if group:
        order.memory *= cgroups.RESERVED
    return order


def close(*descriptors):
    """Those that are not None."""
    for descriptor in descriptors:
        if descriptor is not None:
            os.close(descriptor)


def reaped():
    """(pid, status) of every child that has ended."""
    try:
        while (dead := os.waitpid(-1, os.WNOHANG))[0]:
            yield dead
    except ChildProcessError:
        return


def find_id(line):
    """The id of an order that could not be read, so that its sender hears of it."""
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
        import bridge
        import code_mode
        import compiling
        import console
        import convert  # noqa: F401  found before sys.path changes
        import engine  # noqa: F401
        import graph_scans
        import kernel_process
        import orders  # noqa: F401
        import program  # noqa: F401
        import syntax  # noqa: F401
        import unencodable

        bridge.install()
        code_mode.install()
        compiling.install()
        console.install()
        graph_scans.install()
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
        ms=round((time.perf_counter() - started_at) * 1000),
    )
    zygote.serve()


if __name__ == "__main__":
    main()
