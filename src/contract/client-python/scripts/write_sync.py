"""
Writes the synchronous client from the asynchronous one, by replacing names.

usage: python write_sync.py OUTPUT_FOLDER
"""

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "troupe_client"
HEADER = "# `npm run python-client` writes this file from `_async/{name}`: do not edit it.\n"
REPLACEMENTS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"\bAsyncGenerator\[(.+?), None\]", r"Generator[\1, None, None]"),
        (r"\bAsync(?=[A-Z])", ""),
        (r"\bAwaitable\[(\w+)\]", r"\1"),
        (r"\bAwaitable, ", ""),
        (r"\basync (def|with|for)\b", r"\1"),
        (r"\bawait ", ""),
        (r"\b__a(iter|enter|exit)__\b", r"__\1__"),
        (r"\baread\b", "read"),
        (r"\baclose\b", "close"),
        (r"\baclosing\b", "closing"),
        (r"\basync_(?=sleep|at_end|completed)", ""),
        (r"\bCoroutine\[Any, Any, (\w+)\]", r"\1"),
        (r"\bCoroutine, ", ""),
        (r"TypeVar\(\"Session\", bound=Session\)", 'TypeVar("Session", bound=Session)'),
    ]
]


def sync(source: str) -> str:
    """Returns the synchronous form of a module."""
    for pattern, replacement in REPLACEMENTS:
        source = pattern.sub(replacement, source)
    return source


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted((PACKAGE / "_async").glob("*.py")):
        (target / path.name).write_text(HEADER.format(name=path.name) + sync(path.read_text()))
