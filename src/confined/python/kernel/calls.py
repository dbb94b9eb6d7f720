"""Questions of notebook code to the server, such as a query of a datasource, over the kernel's own socket.

    from us    {"op":"kernel-call","id","method",…}
    to us      channel 5  u32le id · the answer, whose form the method defines

Any thread may ask. Its answer comes through the reader thread. An interrupt of a waiting cell ends the wait; the asking
thread informs the server.
"""

import itertools
import queue
import struct

from kernel.outbox import MessageTooLarge
from troupe import channel

IDENT = struct.Struct("<I")


class Calls:
    """The calls that wait for the server's answers. Owned by one kernel process."""

    def __init__(self, outbox):
        self._outbox = outbox
        self._ids = itertools.count(1)
        self._waiting = {}

    def ask(self, method, **fields) -> memoryview:
        """Returns the server's answer. Blocks until the answer arrives; an interrupt
        ends the wait at once. When the question is too large for the server, raises
        channel.TooLarge and sends nothing."""
        ident, answers = next(self._ids) & 0xFFFFFFFF, queue.SimpleQueue()
        self._waiting[ident] = answers
        try:
            self._outbox.say(op="kernel-call", id=ident, method=method, **fields)
            return answers.get()
        except MessageTooLarge as excess:
            raise channel.TooLarge(str(excess)) from None
        finally:
            del self._waiting[ident]

    def receive(self, body):
        """Takes an answer; called by the reader thread. Drops an answer for which no call waits."""
        (ident,) = IDENT.unpack_from(body)
        if answers := self._waiting.get(ident):
            answers.put(memoryview(body)[IDENT.size :])
