"""How a child of the zygote reaches the server that has ordered it.

The order names a unix socket, which listens for this one process, and a token:

    from us    a frame with the token, and nothing else
    to us      channel 6   JSON: the launch, which names the workspace and the task of this process

Only the launch names the workspace to this process. The zygote never learns of one, because each kernel inherits the
zygote's memory. The server accepts the process that the zygote has reported, with the right token, and closes all
other connections. When too many processes connect, it may close the connection of this one, too; then this process
connects again.
"""

import os
import socket
import time

import msgspec

from forking.child import MAX_WORDS_BYTES
from frames import FROM_KERNEL, LAUNCH, FrameReader, frame

PATIENCE_S = 20
PAUSE_S = 0.01


class Address(msgspec.Struct):
    """The address to connect to, and the token by which this process is known there."""

    path: str
    token: str


decode_address = msgspec.json.Decoder(Address).decode


class Connection:
    """The connection of this process to the server. `frames` yields (channel, body) of everything after the launch."""

    current = None  # the connection of this process

    def __init__(self, address: bytes, decode_launch):
        """Connects and receives the launch. Raises OSError when the server is gone or does not want this process."""
        to = decode_address(address)
        deadline = time.monotonic() + PATIENCE_S
        while (launch := self._meet(to)) is None:
            if time.monotonic() > deadline:
                raise TimeoutError("the server has not taken the connection")
            time.sleep(PAUSE_S)
        Connection.current = self
        self.launch = decode_launch(launch)

    def _meet(self, to) -> bytes | None:
        """Returns the launch; None when the server has closed the connection before it came."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(to.path)
        self.reader = FrameReader(self.sock)
        self.frames = iter(self.reader)
        try:
            self.sock.sendall(frame(FROM_KERNEL, to.token.encode()))
        except (BrokenPipeError, ConnectionResetError):
            return self.sock.close()
        channel, body = next(self.frames, (None, None))
        if channel != LAUNCH:
            return self.sock.close()
        return body

    def say(self, **message):
        """Sends a message."""
        self.sock.sendall(frame(FROM_KERNEL, msgspec.json.encode(message)))


def report_failure():
    """
    Called in a process that cannot begin to work and has printed the reason. Once the process has its launch, it
    reports the reason to the server itself. Then it empties the file that the zygote reads, because the text may name
    a tenant's files.
    """
    if Connection.current is None:
        return
    start = max(0, os.fstat(2).st_size - MAX_WORDS_BYTES)
    words = os.pread(2, MAX_WORDS_BYTES, start).decode(errors="replace").strip()
    os.ftruncate(2, 0)
    if words:
        Connection.current.say(op="start-failed", words=words)
