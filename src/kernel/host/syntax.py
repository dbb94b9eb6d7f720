"""Whether code parses: a process of its own that only ever parses, for answers that must not hold up the server.

One JSON document per line, in and out: {"id", "codes": [text]} → {"id", "parses": [bool]}. A code that takes too long, or breaks the
parser, ends this process; its starter then knows which request that was. A code that takes the parser over finds nothing
to read but Python, nothing to write and no network, where Linux offers Landlock and seccomp.
"""

import ast
import contextlib
import json
import os
import resource
import signal
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # it is started without one

from confinement import capabilities, landlock, seccomp, syscalls, views

SECONDS_PER_REQUEST = 5
MEMORY_BYTES = 1 << 30
FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def parses(code: str) -> bool:
    try:
        compile(code, "cell", "exec", FLAGS, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):      # ValueError: a null byte
        return False
    return True


def confine():
    """As far as this machine allows."""
    syscalls.set_dumpable(False)
    with contextlib.suppress(OSError):
        capabilities.drop_capabilities()
    with contextlib.suppress(OSError):
        capabilities.forbid_new_privileges()
        if abi := landlock.find_abi():
            landlock.restrict(abi, [(path, landlock.READ) for path in views.find_python()], tcp_ports=[])
        if syscalls.MACHINE is not None:
            program = seccomp.build(shield=(os.getppid(),), no_truncate=True, no_network=True, no_ptrace=True)
            seccomp.restrict(program)


def main():
    warnings.simplefilter("ignore")         # an invalid escape sequence is no error, and nobody reads stderr
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(limit, (0, 0))
    confine()
    for line in sys.stdin:
        request = json.loads(line)
        signal.alarm(SECONDS_PER_REQUEST)
        answer = {"id": request["id"], "parses": [parses(code) for code in request["codes"]]}
        signal.alarm(0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
