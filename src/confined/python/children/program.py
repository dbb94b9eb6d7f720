"""Replaces this process by another program, confined like a conversion. Its standard input is the connection to the server
(connection.py), in both directions; in addition, only standard output and error are open.

    from us    {"op":"program-started"}      the rest is between the server and the program
"""

import os

import msgspec

from children import bare_process
from kernel import kernel_process

LIMITS = {"CORE": 0, "FSIZE": 0, "NOFILE": 256}


class Launch(bare_process.Launch, kw_only=True):
    arguments: list[str]  # the first is the program
    env: dict[str, str]


decode_launch = msgspec.json.Decoder(Launch).decode


def run(order, confinement, link):
    """Becomes the program. Raises when it cannot be started."""
    limits = {**LIMITS, **({"DATA": order.memory} if order.memory else {})}
    connection = bare_process.become(order, confinement, link, limits, decode_launch)
    connection.say(op="program-started")
    kernel_process.begin_work()
    os.dup2(connection.sock.fileno(), 0)
    arguments = connection.launch.arguments
    os.execve(arguments[0], arguments, connection.launch.env)
