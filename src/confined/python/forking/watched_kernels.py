"""The zygote's part in counting memory: the kernels that the memory watch looks at, and the handling of its reports."""

import select
import signal
from contextlib import suppress
from itertools import count

from forking.memory_watch import MemoryWatch


class WatchedKernels:
    """Used where there are no control groups. Owns the process of the memory watch, from the first kernel on."""

    def __init__(self, family, has_groups, shield, leave):
        self.family = family
        self.has_groups = has_groups
        self.shield = shield  # process ids that kernels may not signal
        self.leave = leave  # lets go of the zygote's signals and streams, in a child
        self.watch = None
        self.keys = count(1)  # the keys by which the watch knows kernels: unlike pids, each is used only once

    @property
    def pid(self) -> int | None:
        """The pid of the watch."""
        return None if self.watch is None else self.watch.pid

    def counts(self, memory) -> bool:
        """Returns whether the memory watch has to enforce this limit."""
        return bool(memory and not self.has_groups)

    def facts_of(self, order, has_init, key=None):
        """Returns (key, limit, size of its /tmp) of a child; None when the watch does not count for it. `key`: of the processes
        with which it shares its memory."""
        if not self.counts(order.memory):
            return None
        return key or next(self.keys), order.memory, (order.confine.tmp_mb << 20) if has_init else 0

    def start(self):
        """Makes the watch count every existing kernel. If the watch cannot be forked, kernels start without it.
        """
        with suppress(OSError):
            self.watch = MemoryWatch(self.leave)
            self.shield.add(self.watch.pid)
            self.family.poll.register(self.watch.socket, select.POLLIN)
        for pid, child in self.family.children.items():
            self.begin(pid, child)

    def begin(self, pid, child):
        if self.watch and child.watched and child.id is not None:
            key, limit, tmp_bytes = child.watched
            self.watch.add(key, pid, limit, tmp_bytes)

    def forget(self, pid, child):
        if self.watch and child.watched:
            self.watch.forget(child.watched[0], pid)

    def listen(self, ready):
        """
        Kills kernels that use too much memory. Reports that at once. The system takes long to free so much memory,
        and the server may see the end of the kernel's socket before the end of the process.
        """
        if self.watch is None or self.watch.socket.fileno() not in ready:
            return
        for key in self.watch.exceeded():
            for pid, child in self.family.children.items():
                if child.watched and child.watched[0] == key:
                    child.exceeds = True
                    child.signal(pid, signal.SIGKILL)
                    self.family.report(child, -signal.SIGKILL)

    def restart(self):
        """Called when the process of the watch has ended."""
        self.shield.discard(self.watch.pid)
        self.family.poll.unregister(self.watch.socket)
        self.watch.close()
        self.watch = None
        self.start()
