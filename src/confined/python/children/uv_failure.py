"""Messages for people from the errors of uv."""

import re
import signal

DECORATION = re.compile(r"[│╰─▶×├]+|^error:")
PROGRESS = re.compile(r"(?m)^(Using Python|Resolved|Prepared|Would) .*\n")
ADDRESS = re.compile(r"(https?://)(?:[^/\s@]*@)?([^\s?`'\")]*)(?:\?[^\s`'\")]*)?")

DISK_FULL = "No space left on device"


def explain(text, code) -> str:
    """Returns uv's error on one line, without its decoration. An index may name files with a
    password, or with a signature in the query, so URLs lose both."""
    if DISK_FULL in text:
        return "The disk of the server is full, so the packages cannot be installed."
    if code == -signal.SIGKILL:  # killed by the limit of memory: the server ends the installer, and uv with it
        return "Installing the packages needs more memory than the installer may use. Ask for fewer packages."
    words = re.sub(r"\s+", " ", DECORATION.sub(" ", PROGRESS.sub("", ADDRESS.sub(r"\1\2", text)))).strip()
    return words or f"uv ended with the exit code {code}."
