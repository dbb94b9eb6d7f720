"""The processes that the zygote has forked, until their ends are reported."""

import os
import select
import signal
from contextlib import suppress
from itertools import islice

import processes

MAX_ENDS_AT_ONCE = 256  # reaps at most this many at once, so that children which end in quick succession do not delay orders


class Family:
    """Reaps children, reports each end once, and kills the descendants that dead kernels leave."""

    def __init__(self, say, poll, wake):
        self.say = say
        self.poll = poll  # the selector of the zygote's loop; the links of inits are registered here
        self.wake = wake  # a byte written to this descriptor calls `reap` again
        self.children = {}  # pid -> Child
        self.doomed = set()  # pids of orphans that were killed and are not reaped yet
        self.links = {}  # link -> Child, until a report arrives on it

    def follow(self, pid, child):
        """Notes a forked child that has an id, and listens to its init."""
        if child.link is not None:
            self.links[child.link] = child
            self.poll.register(child.link, select.POLLIN)
        self.say(op="forked", id=child.id, pid=pid, init=child.has_init)

    def has(self, id) -> bool:
        return any(child.id == id for child in self.children.values())

    def signal(self, id, number):
        for pid, child in self.children.items():
            if child.id == id:
                child.signal(pid, number)

    def weigh(self, weights):
        """Sets the weights of children's control groups, by the children's ids. Ignores other ids."""
        for child in self.children.values():
            if child.group is not None and child.id in weights:
                child.group.weigh(weights[child.id])

    def listen(self, ready):
        """Reads the reports of inits. An init reports how its kernel ended before it frees its memory, which takes
        long."""
        for link in self.links.keys() & ready:
            self._hear(link)

    def _hear(self, link):
        self.poll.unregister(link)
        child = self.links.pop(link)
        code = child.code_from_init()
        if code is not None:
            self.report(child, code)

    def report(self, child, code):
        """Reports the end of a child once: the report of init comes before the end of init itself."""
        if not child.has_ended and child.id is not None:
            child.has_ended = True
            number = -code if code < 0 else None
            is_full = number == signal.SIGKILL and child.is_out_of_memory()
            words = child.read_words()
            self.say(op="exited", id=child.id, code=max(code, 0), signal=number, out_of_memory=is_full, words=words)

    def reap(self):
        """Yields (pid, Child or None) for every process that has ended, after its end was reported.
        """
        ended = list(islice(reaped(), MAX_ENDS_AT_ONCE))
        for pid, status in ended:
            code = processes.exit_code(status)
            if code is None:  # the child asked to be traced by the zygote, which would have to continue it after every signal
                processes.kill_tree(pid)
            else:
                yield pid, self._bury(pid, code)
        if len(ended) == MAX_ENDS_AT_ONCE:
            with suppress(BlockingIOError):  # the pipe is full, which wakes the loop as well
                os.write(self.wake, b"\0")  # continue after the waiting orders

    def _bury(self, pid, code):
        self.doomed.discard(pid)
        child = self.children.pop(pid, None)
        if child is not None:
            if child.link in self.links:
                self._hear(child.link)
            self.report(child, code)
        return child

    def kill_orphans(self, spared):
        """Kills descendants of dead kernels (setsid, double fork), which have become children of
        the zygote. `spared`: the pids of children that are not descendants of a kernel."""
        for pid in processes.children():
            if pid not in self.children and pid not in self.doomed and pid not in spared:
                self.doomed.add(pid)
                processes.kill_tree(pid)  # its SIGCHLD starts another round, which reaps its children


def reaped():
    """Yields (pid, status) of every child that has ended."""
    try:
        while (dead := os.waitpid(-1, os.WNOHANG))[0]:
            yield dead
    except ChildProcessError:
        return
