"""The kernel's end of its socket, in the shape of the queue that marimo puts its notifications into.

Every write blocks while the server does not read: that is the back-pressure on a cell that prints faster than anyone
takes it. A burst of notifications that marimo's main thread makes between two bits of notebook code is gathered and
sent at once; nothing is ever held while notebook code runs, and whatever another thread sends takes all that was
gathered along, in order.
"""

import threading
import time

import msgspec
from marimo._utils.signals import SigintHandler

from frames import FROM_KERNEL, frame

GATHERED_LIMIT_BYTES = 1 << 15
GATHERED_LIMIT_S = 0.002


class Outbox:
    """Owned by one kernel process; safe to use from every thread of it."""

    def __init__(self, sock):
        self._sock = sock
        self._lock = threading.Lock()
        self._parts = []
        self._size = 0
        self._since = 0.0
        self._gathering = False

    def put(self, data, block=True, timeout=None):
        """Takes one encoded notification from marimo, which has deferred interrupts already."""
        with self._lock:
            self._parts.append(frame(FROM_KERNEL, data))
            self._size += len(data)
            if not self._may_wait():
                self._send()

    put_nowait = put

    def say(self, **message):
        """Sends one of our own messages at once."""
        with SigintHandler.defer(), self._lock:  # an interrupt in the middle of a frame would ruin the stream
            self._parts.append(frame(FROM_KERNEL, msgspec.json.encode(message)))
            self._send()

    def gather(self):
        """From here on, what the main thread puts may wait for release()."""
        self._gathering = True

    def release(self):
        """Sends what was gathered; from here on everything is sent at once. Called before notebook code runs."""
        self._gathering = False
        if self._parts:
            with SigintHandler.defer(), self._lock:
                self._send()

    def _may_wait(self):
        if not self._gathering or self._size > GATHERED_LIMIT_BYTES:
            return False
        if threading.current_thread() is not threading.main_thread():
            return False
        now = time.monotonic()
        if len(self._parts) == 1:
            self._since = now
        return now - self._since < GATHERED_LIMIT_S

    def _send(self):
        data, self._parts, self._size = b"".join(self._parts), [], 0
        if data:
            self._sock.sendall(data)
