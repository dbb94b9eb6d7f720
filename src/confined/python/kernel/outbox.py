"""The kernel's end of its socket, in the shape of the queue that marimo puts its notifications into.

Every write blocks while the server does not read: that is the back-pressure on a cell that prints faster than the
server reads. A burst of notifications that marimo's main thread makes between two bits of notebook code is gathered and
sent at once; nothing is held back while notebook code runs, and a send of another thread first sends everything
gathered, in order.
"""

import threading
import time

import msgspec
from marimo._utils.signals import SigintHandler

from frames import FROM_KERNEL, LIMITS, find_excess, frame

# The notifications that the server reads, or that answer its questions. The others (tables of variables, messages of
# widgets, lists of connections) hold values of notebook code in arbitrary shapes and sizes, which no reader would look
# at.
READ = tuple(
    f'{{"op":"{name}"'.encode()
    for name in """
        cell-op execution completed-run interrupted variables notebook-document-transaction missing-package-alert
        completion-result
    """.split()
)
GATHERED_LIMIT_BYTES = 1 << 15
GATHERED_LIMIT_S = 0.002


class MessageTooLarge(Exception):
    """Raised instead of sending a message for which the server would end this kernel. Its text names the limit."""


class Outbox:
    """The way to the server. Owned by one kernel process, and safe to use from every thread of it."""

    def __init__(self, sock, limits=LIMITS):
        self._sock = sock
        self._limits = limits
        self._lock = threading.Lock()
        self._parts = []
        self._size = 0
        self._since = 0.0
        self._gathering = False

    def put(self, data, block=True, timeout=None):
        """Takes one encoded notification from marimo, which has deferred interrupts already. Discards notifications
        that the server does not read, or would not take."""
        if not data.startswith(READ) or len(data) > self._limits.bytes:
            return
        # A value takes at least one byte, so a notification with fewer bytes than there may be values is not counted.
        if len(data) > self._limits.values and find_excess(data, self._limits):
            return
        with self._lock:
            self._parts.append(frame(FROM_KERNEL, data))
            self._size += len(data)
            if not self._may_wait():
                self._send()

    put_nowait = put

    def say(self, **message):
        """Sends one of our own messages at once. Raises MessageTooLarge, and sends nothing, when the server would not
        take it."""
        json = msgspec.json.encode(message)
        if excess := find_excess(json, self._limits):
            raise MessageTooLarge(excess)
        with SigintHandler.defer(), self._lock:  # an interrupt in the middle of a frame would ruin the stream
            self._parts.append(frame(FROM_KERNEL, json))
            self._send()

    def gather(self):
        """Holds the main thread's notifications back until release()."""
        self._gathering = True

    def release(self):
        """Sends the gathered notifications; later ones are sent at once. Called before notebook code runs."""
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

    def cut_off(self):
        """Drops everything from here on. Called in a fork, in which another thread may have left the lock taken."""
        self._sock, self._lock, self._parts, self._size = None, threading.Lock(), [], 0

    def _send(self):
        data, self._parts, self._size = b"".join(self._parts), [], 0
        if data and self._sock is not None:
            self._sock.sendall(data)
