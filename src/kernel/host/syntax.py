"""Whether code parses: a process of its own that only ever parses, for answers that must not hold up the server.

One JSON document per line, in and out: {"id", "codes": [text]} → {"id", "parses": [bool]}. A code that takes too long, or breaks the
parser, ends this process; its starter then knows which request that was.
"""

import ast
import json
import resource
import signal
import sys
import warnings

SECONDS_PER_REQUEST = 5
MEMORY_BYTES = 1 << 30
FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def parses(code: str) -> bool:
    try:
        compile(code, "cell", "exec", FLAGS, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):      # ValueError: a null byte
        return False
    return True


def main():
    warnings.simplefilter("ignore")         # an invalid escape sequence is no error, and nobody reads stderr
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        request = json.loads(line)
        signal.alarm(SECONDS_PER_REQUEST)
        answer = {"id": request["id"], "parses": [parses(code) for code in request["codes"]]}
        signal.alarm(0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
