"""The way for notebook code to ask its server: one question, one answer. The kernel provides it
before a notebook runs.
"""

import contextlib

_ask = None
_at_end = []


class NoServer(RuntimeError):
    """Raised because this code does not run in a notebook of a Troupe server."""


class TooLarge(ValueError):
    """Raised, before anything is sent, for a question that is larger than the server accepts.
    The text names the limit."""


def provide(ask):
    """`ask(method, **fields)` returns the bytes of the answer, or raises TooLarge; called by the kernel."""
    global _ask
    _ask = ask


def ask(method, **fields):
    """Returns the bytes of the server's answer. Raises TooLarge for a question that the server would not take."""
    if _ask is None:
        raise NoServer("datasources can be used in notebooks of a Troupe server only")
    return _ask(method, **fields)


def at_end_of_work(call):
    """Makes the kernel call `call(interrupted)` after each of its commands, on the notebook's thread."""
    _at_end.append(call)


def end_work(interrupted):
    """Called by the kernel after each command. `interrupted`: whether the command was cancelled or has reached its deadline."""
    for call in _at_end:
        with contextlib.suppress(Exception):  # notebook code can change what is called
            call(interrupted)
