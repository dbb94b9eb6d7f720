"""
A process that notebook code forks (os.fork, multiprocessing) is a copy of the kernel, and must not act as a kernel.

- It is cut off from the server: its messages would be taken for the kernel's.
- Its output goes straight to the descriptors, like that of every program that a cell starts.
- It ends where its cell ends, as a script would. Otherwise marimo would continue the kernel's work in it.
"""

import os

from kernel import stdio
from kernel.kernel_state import STATE


def watch():
    """Called once in a kernel."""
    os.register_at_fork(before=stdio.flush, after_in_child=_leave)


def _leave():
    STATE.is_fork = True
    STATE.outbox.cut_off()


def end_with(result):
    """Ends this process if it is a fork whose cell has run. `result` is marimo's result, or None
    when there is none.
    """
    if not STATE.is_fork:
        return
    stdio.flush()
    failure = getattr(result, "exception", None)
    code = failure.code if isinstance(failure, SystemExit) else int(result is None or failure is not None)
    os._exit(code & 0xFF if isinstance(code, int) else int(code is not None))
