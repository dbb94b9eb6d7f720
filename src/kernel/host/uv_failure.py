"""What uv says of a failure, as it is told to people."""

import re

DECORATION = re.compile(r"[│╰─▶×├]+|^error:")
ADDRESS = re.compile(r"(https?://)(?:[^/\s@]*@)?([^\s?`'\")]*)(?:\?[^\s`'\")]*)?")


def explain(text, code) -> str:
    """Returns it on one line, without its decoration. An index may name files with a password, or with a signature in the
    query: addresses lose both."""
    words = re.sub(r"\s+", " ", DECORATION.sub(" ", ADDRESS.sub(r"\1\2", text))).strip()
    return words or f"uv ended with the exit code {code}."
