"""The frames that a kernel and the server exchange over the kernel's unix socket.

    u32le length of what follows · u8 channel · JSON

To the kernel: channel 1 a command with its `seq`, 2 values of UI elements, 3 completion, 5 the answer to a call of
notebook code.
From the kernel: channel 0 for everything.
"""

import struct

CONTROL, UI, COMPLETION, CALL = 1, 2, 3, 5
FROM_KERNEL = 0
HEAD = struct.Struct("<IB")


def frame(channel: int, body: bytes) -> bytes:
    """One frame, ready to be sent."""
    return HEAD.pack(len(body) + 1, channel) + body


def read_frames(sock):
    """Yields (channel, body) until the other side is gone; a frame that was cut off by that is dropped."""
    stream = sock.makefile("rb", buffering=1 << 16)
    while len(head := stream.read(HEAD.size)) == HEAD.size:
        length, channel = HEAD.unpack(head)
        body = stream.read(length - 1)
        if len(body) < length - 1:
            return
        yield channel, body
