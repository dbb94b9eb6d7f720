"""
Converts notebook files: Troupe's serialization to and from .py, .ipynb and .md, and to .html, by marimo's own
converters. It also reads marimo's snippets, which are notebook files. Runs in a short-lived child of the zygote,
because its input is untrusted. The child has limits of time and memory. It is confined like a kernel, but has no
writable path and no network. A crash of a parser ends only that child. It never runs notebook code. One conversion
per process, over its connection to the server (connection.py), whose launch names the direction and the format:

    from us    {"op":"convert-ready"}
    to us      {"content", "installs"?}  or  {"serialization", "results"?, "title"?, "assetUrl"?, "includeCode"?,
               "widgets"?}  or anything, when marimo's snippets are asked for
    from us    {"op":"convert-done", "ok":true, "serialization", "pip"}
               or, when it writes or lists, {…, "ok":true, "content"}
               or {…, "ok":false, "error":{"code","message"}}

Formats lose parts they cannot hold: docs/notebook-files.md has the table.
"""

import os
import sys
import tempfile

import msgspec

from children import bare_process
from conversion.notebook_files import UnreadableNotebook, find_pip_requirements, read_notebook
from conversion.notebook_ir import write_html, write_ipynb, write_md, write_py
from conversion.snippets import list_snippets
from forking import warm
from frames import FROM_KERNEL, frame
from kernel import kernel_process

LIMITS = {"CPU": 30, "DATA": 1 << 30, "CORE": 0, "FSIZE": 0, "NOFILE": 64}
RECURSION_LIMIT = 3000
DIRECTIONS = {
    *(("read", kind) for kind in ("py", "ipynb", "md")),
    *(("write", kind) for kind in ("py", "ipynb", "md", "html")),
    ("list", "snippets"),
}


class Launch(bare_process.Launch, kw_only=True):
    direction: str
    format: str

    def __post_init__(self):
        if (self.direction, self.format) not in DIRECTIONS:
            raise ValueError(f"cannot {self.direction} {self.format}")


decode_launch = msgspec.json.Decoder(Launch).decode


def run(order, confinement, link):
    """Answers one order on its socket and ends the process. `link`: the end of a pipe that a session's init needs."""
    connection = bare_process.become(order, confinement, link, bare_process.within_workspace(LIMITS, order), decode_launch)
    tempfile.tempdir = "/tmp"  # libraries ask for it when they are imported; searching for a writable one would fail
    sys.setrecursionlimit(RECURSION_LIMIT)
    connection.say(op="convert-ready")
    kernel_process.begin_work()
    for _, body in connection.frames:
        answer = convert(connection.launch.direction, connection.launch.format, body)
        connection.sock.sendall(frame(FROM_KERNEL, encode({"op": "convert-done", **answer})))
        break
    os._exit(0)


def warm_up():
    """Writes an empty notebook as a page, in a process that has no request yet: what is imported, compiled and copied on first
    use takes longer than the writing of a usual page."""
    warm.import_exports()
    tempfile.tempdir = "/tmp"
    write_html({"cells": [{"cell_id": "a", "code": "", "options": {}}]}, {}, "notebook", None, True)


def encode(answer) -> bytes:
    try:
        return msgspec.json.encode(answer)
    except UnicodeEncodeError:  # escapes in a file can contain half a surrogate pair
        error = {"code": "unreadable_notebook", "message": "it holds text that is not Unicode"}
        return msgspec.json.encode({"op": "convert-done", "ok": False, "error": error})


def convert(direction, format, body) -> dict:
    """Returns the answer to one request. A failure is an answer too."""
    code = "unreadable_notebook" if direction == "read" else "unwritable_notebook"
    try:
        if direction == "list":
            return {"ok": True, "content": list_snippets()}
        request = msgspec.json.decode(body)
        if direction == "read":
            content = request["content"]
            serialization = read_notebook(content, format, request.get("installs") is True)
            return {"ok": True, "serialization": serialization, "pip": find_pip_requirements(content, format)}
        return {"ok": True, "content": write_notebook(request, format)}
    except UnreadableNotebook as error:
        message = str(error)
    except RecursionError:
        message = "it is nested too deeply"
    except MemoryError:
        message = "it is too large or too complex"
    except ModuleNotFoundError as error:
        message = f"the Python environment lacks {error.name}"
    except Exception as error:  # marimo's converters document no exceptions
        message = f"the converter failed: {type(error).__name__}: {error}"
    return {"ok": False, "error": {"code": code, "message": message}}


def write_notebook(request, format) -> str:
    notebook, results = request["serialization"], request.get("results") or {}
    if format == "py":
        return write_py(notebook)
    if format == "md":
        return write_md(notebook)
    if format == "ipynb":
        return write_ipynb(notebook, results)
    include_code = request.get("includeCode") is not False
    title, asset_url = request.get("title") or "notebook", request.get("assetUrl")
    return write_html(notebook, results, title, asset_url, include_code, request.get("widgets"))
