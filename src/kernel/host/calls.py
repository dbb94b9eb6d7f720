"""Questions of notebook code to the server, such as a query of a datasource, over the kernel's own socket.

    from us    {"op":"kernel-call","id","method",…}
    to us      channel 5  {"id",…}

Any thread may ask. Its answer comes through the reader thread. An interrupt of a waiting cell ends the wait; the server
is told by whoever asked.
"""

import itertools
import queue

import msgspec


class Calls:
    """Owned by one kernel process."""

    def __init__(self, outbox):
        self._outbox = outbox
        self._ids = itertools.count(1)
        self._waiting = {}

    def ask(self, method, **fields) -> dict:
        """The server's answer. Blocks; an interrupt leaves at once."""
        ident, answers = next(self._ids), queue.SimpleQueue()
        self._waiting[ident] = answers
        try:
            self._outbox.say(op="kernel-call", id=ident, method=method, **fields)
            return answers.get()
        finally:
            del self._waiting[ident]

    def receive(self, body):
        """Called by the reader thread. An answer that nobody waits for any more is dropped."""
        answer = msgspec.json.decode(body)
        if answers := self._waiting.get(answer.get("id")):
            answers.put(answer)
