"""
An init that is cloned ahead, for the next kernel or for the next process with one request. Making namespaces and joining a control
group takes the system longer than the rest of a start, and both are the same for every process of one policy. The spare
waits for one order and becomes the init of that process; without one it ends with the zygote, so no other process may
have the zygote's end of the socket between them.
"""

import os
import socket
import struct
import time
from typing import NamedTuple

import msgspec

LENGTHS = struct.Struct("<II")
# how long after an order a spare is made, so that it takes no processor time from the starting
# process
MAKE_AFTER_S = 0.03


class Policy(NamedTuple):
    """The properties that processes must share to get the same spare."""

    confine: object  # the confinement, as the order describes it
    memory: int | None
    writes_files: bool  # the same member as in the order
    share: None = None  # a spare does not know yet with which processes it will share its memory


class Spare:
    """The zygote's record of a waiting spare."""

    def __init__(self, pid, policy, control):
        self.pid = pid
        self.policy = policy
        self.control = control

    def give(self, order):
        """
        Sends the order. The process's address in it is not copied. Raises OSError when the spare is
        gone.
        """
        op = type(order).__struct_config__.tag
        rest = msgspec.msgpack.encode([op, order.limits, order.nice, order.memory])
        with memoryview(order.connection) as connection:
            self.control.sendall(LENGTHS.pack(len(rest), len(connection)) + rest)
            self.control.sendall(connection)


class Spares:
    """Owns the spare of one kind: at most one waits. `clone(policy, control, await_order)` makes it, see Forks.clone_spare."""

    def __init__(self, clone):
        self.clone = clone
        self.waiting = None
        self.policy = None  # the policy of the last process: the next one probably has the same
        self.due = None

    def patience_s(self) -> float | None:
        """Returns the seconds until a spare must be made; None when none is to be made."""
        return None if self.due is None else max(0, self.due - time.monotonic())

    def expect(self, policy):
        self.policy = policy
        self.due = time.monotonic() + MAKE_AFTER_S

    def make(self):
        """
        Makes a spare if one is due. Failures are ignored: without a spare the next process takes longer, and meets the
        same failure.
        """
        self.due = None
        if self.policy is None:
            return
        if self.waiting is not None and self.waiting.policy == self.policy:
            return
        self.drop()
        control, theirs = socket.socketpair()
        with theirs:
            try:
                pid = self.clone(self.policy, theirs.fileno(), lambda: await_order(theirs))
            except OSError:
                control.close()
            else:
                self.waiting = Spare(pid, self.policy, control)

    def take(self, policy) -> Spare | None:
        """Returns a fitting spare, which then belongs to the caller; None when there is none."""
        if self.waiting is None or self.waiting.policy != policy:
            return None
        taken, self.waiting = self.waiting, None
        return taken

    def drop(self):
        """Discards the spare by closing its socket, which ends it. No new one is made until another process starts."""
        self.due = None
        if self.waiting is not None:
            self.waiting.control.close()
            self.waiting = None

    def forget(self, pid):
        """Called when a child has ended, which may be the spare."""
        if self.waiting is not None and self.waiting.pid == pid:
            self.drop()


class GivenOrder(msgspec.Struct):
    """The parts of the order that a spare needs for its process. The spare has its namespaces already."""

    connection: bytes
    op: str
    limits: dict[str, int]
    nice: int
    memory: int | None


def await_order(control: socket.socket) -> GivenOrder:
    """In the spare: returns the order. Ends the process when the zygote has ended or has discarded the spare."""
    with control, control.makefile("rb") as stream:
        head = stream.read(LENGTHS.size)
        if len(head) < LENGTHS.size:
            os._exit(0)
        lengths = LENGTHS.unpack(head)
        rest, connection = map(stream.read, lengths)
    if len(connection) < lengths[1]:
        os._exit(0)
    return GivenOrder(connection, *msgspec.msgpack.decode(rest))
