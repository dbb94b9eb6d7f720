"""Another program in place of this process, confined like a conversion. Its standard input is the connection to the server
(frames.py), in both directions; it has standard output and error, and nothing else is open in it.

    from us    {"op":"program-started","token"}      the rest is between the server and the program
"""

import os

import msgspec

import bare_process
import kernel_process
from frames import FROM_KERNEL, frame

LIMITS = {"CORE": 0, "FSIZE": 0, "NOFILE": 256}


def run(order, confinement, link):
    """Becomes the program. Raises when it cannot be started."""
    limits = {**LIMITS, **({"DATA": order.memory} if order.memory else {})}
    sock = bare_process.become(order, confinement, link, limits)
    sock.sendall(frame(FROM_KERNEL, msgspec.json.encode({"op": "program-started", "token": order.token})))
    kernel_process.begin_work()
    os.dup2(sock.fileno(), 0)
    os.execve(order.arguments[0], order.arguments, order.env)
