"""
A child of the zygote that only checks whether code parses, so that parsing does not hold up the server. One such
child checks the short code of all workspaces. Long code gets a child of its own, which counts towards its workspace.

It is confined like a conversion: it reads Python and the system, writes nothing and has no network. Over its connection
to the server (connection.py):

    from us    {"op":"syntax-ready"}
    to us      {"id", "codes": [text]}
    from us    {"op":"parsed", "id", "parses": [bool]}

A question that takes more processor time than the launch allows, or breaks the parser, ends this process; the server then knows
which question that was.
"""

import ast
import os
import signal
import warnings

import msgspec

from children import bare_process
from kernel import kernel_process

LIMITS = {"DATA": 1 << 30, "CORE": 0, "FSIZE": 0, "NOFILE": 64}
FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Launch(bare_process.Launch, kw_only=True):
    seconds: float  # the processor time of a question


decode_launch = msgspec.json.Decoder(Launch).decode


def run(order, confinement, link):
    """Answers questions until the server closes the connection, and ends the process."""
    connection = bare_process.become(order, confinement, link, bare_process.within_workspace(LIMITS, order), decode_launch)
    warnings.simplefilter("ignore")  # an invalid escape sequence is not an error
    connection.say(op="syntax-ready")
    kernel_process.begin_work()
    for _, body in connection.frames:
        question = msgspec.json.decode(body)
        signal.setitimer(signal.ITIMER_PROF, connection.launch.seconds)  # of processor time: the machine may be busy
        answers = [parses(code) for code in question["codes"]]
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.say(op="parsed", id=question["id"], parses=answers)
    os._exit(0)


def parses(code: str) -> bool:
    try:
        compile(code, "cell", "exec", FLAGS, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # ValueError: a null byte
        return False
    return True
