"""The frames that a kernel and the server exchange over the kernel's unix socket.

    u32le length of the rest · u8 channel · JSON

To the kernel: channel 1 a command with its `seq`, 2 values of UI elements, 3 completion, 4 an interrupt of one command
(u32le seq instead of JSON), 5 the answer to a call of notebook code, 6 the launch, which comes first, 7 the number of a
page that begins to follow the notebook (u32le; 0 when the last page has left). From the kernel: channel 0 for everything.
"""

import io
import itertools
import re
import select
import socket
import struct
from typing import NamedTuple

CONTROL, UI, COMPLETION, INTERRUPT, CALL, LAUNCH, FOLLOW = 1, 2, 3, 4, 5, 6, 7
FROM_KERNEL = 0
HEAD = struct.Struct("<IB")
DEPTH_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in DEPTH_STEPS)
NOT_OF_OBJECTS = bytes(byte for byte in range(256) if byte not in b"{:}")
COLONS = re.compile(rb":+")
INNERMOST_OBJECTS = re.compile(rb"\{:*\}")


class Limits(NamedTuple):
    """The limits of one frame to the server: its bytes, its values, the members of each object, and the depth of its
    nesting."""

    bytes: int
    values: int
    members: int
    depth: int


# The server ends a kernel that sends a larger frame. The limits of the server are 64 MiB, and as many values, members and levels
# as here (bounded-json.ts).
LIMITS = Limits(bytes=60 << 20, values=1_000_000, members=30_000, depth=64)


def find_excess(json: bytes, limits=LIMITS) -> str | None:
    """Returns which limit the JSON exceeds, such as "65 levels, and the limit is 64"; None when
    the server accepts it. Counts as the server does: each comma and each opening bracket outside
    strings is one value."""
    if len(json) > limits.bytes:
        return f"{len(json):,} bytes of JSON, and the limit is {limits.bytes:,}"
    brackets = json.count(b"[") + json.count(b"{")
    if (
        brackets <= limits.depth
        and brackets + json.count(b",") <= limits.values
        and json.count(b":") <= limits.members
    ):
        return None  # nearly every frame is within the limits even if commas and brackets in strings are counted
    between_strings = b"".join(json.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    values = sum(between_strings.count(mark) for mark in (b",", b"[", b"{"))
    if values > limits.values:
        return f"{values:,} values, and the limit is {limits.values:,}"
    steps = map(DEPTH_STEPS.__getitem__, between_strings.translate(None, NOT_BRACKETS))
    depth = max(itertools.accumulate(steps), default=0)
    if depth > limits.depth:
        return f"{depth:,} levels, and the limit is {limits.depth:,}"
    if between_strings.count(b":") > limits.members and (members := _most_members(between_strings, depth)) > limits.members:
        return f"{members:,} members of one object, and the limit is {limits.members:,}"
    return None


def _most_members(between_strings: bytes, depth: int) -> int:
    """Returns how many members the largest object has. Each member has a colon. An object from which the inner objects were
    removed has only its own colons."""
    marks, most = between_strings.translate(None, NOT_OF_OBJECTS), 0
    for _ in range(depth):
        most = max(most, max(map(len, COLONS.findall(marks)), default=0))
        marks = INNERMOST_OBJECTS.sub(b"", marks)
    return most


def frame(channel: int, body: bytes) -> bytes:
    """Returns one frame, ready to be sent."""
    return HEAD.pack(len(body) + 1, channel) + body


def read_frames(sock):
    """Yields (channel, body) until the other side is gone. Drops an incomplete last frame."""
    return iter(FrameReader(sock))


class FrameReader:
    """The frames that arrive at a socket; see read_frames."""

    def __init__(self, sock):
        self._source = _Source(sock)
        self._taken = 0  # bytes of the frames that were taken from the socket

    def __iter__(self):
        stream = io.BufferedReader(self._source, 1 << 16)
        while len(head := stream.read(HEAD.size)) == HEAD.size:
            length, channel = HEAD.unpack(head)
            body = stream.read(length - 1)
            if len(body) < length - 1:
                return
            self._taken += HEAD.size + len(body)
            yield channel, body

    def before_waiting(self, call):
        """Makes the iterating thread call `call` before each wait. `call` returns the number of milliseconds without a
        frame after which it must be called again, or None for the next wait."""
        self._source.before_waiting = call

    def has_read_all(self) -> bool:
        """Returns whether the thread that iterates has taken every frame that was sent so far.
        Called by another thread.
        """
        return self._source.is_waiting and not self._source.has_more()

    def peek(self, size) -> bytes | None:
        """
        Returns up to `size` bytes of the next frame, which stays in the socket for the thread that iterates; empty
        when nothing has come. Returns None when that thread is not waiting for the beginning of a frame. Called by
        another thread; when this returns, the iterating thread may have taken the frame already.
        """
        ahead = self._source.peek(size) if self._is_between_frames() else None
        return None if ahead == b"" and not self._is_between_frames() else ahead  # the other thread may be taking it

    def _is_between_frames(self):
        return self._source.is_waiting and self._source.received == self._taken


class _Source(io.RawIOBase):
    """A socket that knows whether its reader waits for data. `poll` comes before `recv` so that data which has arrived is
    still in the socket, for `has_more` to see, until the reader holds the interpreter's lock again."""

    def __init__(self, sock):
        self.is_waiting = False
        self.received = 0  # bytes
        self.before_waiting = lambda: None
        self._sock = sock
        self._arrivals = select.poll()
        self._arrivals.register(sock, select.POLLIN)

    def readable(self):
        return True

    def readinto(self, buffer):
        self.is_waiting = True
        while not self._arrivals.poll(self.before_waiting()):
            pass
        self.is_waiting = False
        try:
            size = self._sock.recv_into(buffer)
        except ConnectionResetError:  # the other side has ended without reading all data
            return 0
        self.received += size
        return size

    def peek(self, size):
        try:
            return self._sock.recv(size, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except (BlockingIOError, ConnectionResetError):
            return b""

    def has_more(self) -> bool:
        look = select.poll()  # not shared: a signal handler may call this during another call
        look.register(self._sock, select.POLLIN)
        return bool(look.poll(0))
