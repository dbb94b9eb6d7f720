"""A child of the zygote that only checks whether code parses, so that parsing does not hold up the server.

It is confined like a conversion: it reads Python and the system, writes nothing and has no network. Over its connection
to the server (connection.py):

    from us    {"op":"syntax-ready"}
    to us      {"id", "codes": [text]}
    from us    {"op":"parsed", "id", "parses": [bool]}

A code that takes too long, or breaks the parser, ends this process; the server then knows which question that was.
"""

import ast
import os
import signal
import warnings

import msgspec

from children import bare_process
from kernel import kernel_process

LIMITS = {"DATA": 1 << 30, "CORE": 0, "FSIZE": 0, "NOFILE": 64}
SECONDS_PER_QUESTION = 5
FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def run(order, confinement, link):
    """Answers questions until the server closes the connection, and ends the process."""
    connection = bare_process.become(order, confinement, link, LIMITS)
    warnings.simplefilter("ignore")  # an invalid escape sequence is not an error
    connection.say(op="syntax-ready")
    kernel_process.begin_work()
    for _, body in connection.frames:
        question = msgspec.json.decode(body)
        signal.alarm(SECONDS_PER_QUESTION)
        answers = [parses(code) for code in question["codes"]]
        signal.alarm(0)
        connection.say(op="parsed", id=question["id"], parses=answers)
    os._exit(0)


def parses(code: str) -> bool:
    try:
        compile(code, "cell", "exec", FLAGS, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # ValueError: a null byte
        return False
    return True
