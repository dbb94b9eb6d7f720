"""Notebook files: our serialization to and from .py, .ipynb and .md, and to .html, by marimo's own converters.

Runs in a short-lived child of the zygote, because what it reads is untrusted: bounded in time and memory, confined like
a kernel but with nothing that it may write and no network, and a crash of a parser ends only that child. It never runs
notebook code. One conversion per process, over the socket that the
order names:

    from us    {"op":"convert-ready","token"}
    to us      {"content"}  or  {"serialization", "results"?, "title"?, "assetUrl"?}
    from us    {"op":"convert-done", "ok":true, "serialization"}   or, when it writes, {…, "ok":true, "content"}
               or {…, "ok":false, "error":{"code","message"}}

Formats lose what they cannot hold: .md has no column, no format has our cell ids, mo.md("x") comes back as a
triple-quoted block.
"""

import os
import sys
import tempfile

import msgspec

import bare_process
import kernel_process
from frames import FROM_KERNEL, frame, read_frames
from notebook_files import UnreadableNotebook, read_notebook
from notebook_ir import write_html, write_ipynb, write_md, write_py

LIMITS = {"CPU": 30, "DATA": 1 << 30, "CORE": 0, "FSIZE": 0, "NOFILE": 64}
RECURSION_LIMIT = 3000


def run(order, confinement, link):
    """Answers one order on its socket and ends the process. `link`: the end of a pipe that a session's init needs."""
    sock = bare_process.become(order, confinement, link, LIMITS)
    tempfile.tempdir = "/tmp"  # libraries ask for it when they are imported; looking for one that can be written fails
    sys.setrecursionlimit(RECURSION_LIMIT)
    sock.sendall(frame(FROM_KERNEL, msgspec.json.encode({"op": "convert-ready", "token": order.token})))
    kernel_process.begin_work()
    for _, body in read_frames(sock):
        answer = convert(order.direction, order.format, body)
        sock.sendall(frame(FROM_KERNEL, encode({"op": "convert-done", **answer})))
        break
    os._exit(0)


def encode(answer) -> bytes:
    try:
        return msgspec.json.encode(answer)
    except UnicodeEncodeError:  # escapes in a file can spell half a surrogate pair
        error = {"code": "unreadable_notebook", "message": "it holds text that is not Unicode"}
        return msgspec.json.encode({"op": "convert-done", "ok": False, "error": error})


def convert(direction, format, body) -> dict:
    """Returns the answer to one request. A failure is an answer too."""
    code = "unreadable_notebook" if direction == "read" else "unwritable_notebook"
    try:
        request = msgspec.json.decode(body)
        if direction == "read":
            return {"ok": True, "serialization": read_notebook(request["content"], format)}
        return {"ok": True, "content": write_notebook(request, format)}
    except UnreadableNotebook as error:
        message = str(error)
    except RecursionError:
        message = "it is nested too deeply"
    except MemoryError:
        message = "it is too large or too complex"
    except ModuleNotFoundError as error:
        message = f"the Python environment lacks {error.name}"
    except Exception as error:  # marimo's converters promise nothing about what they raise
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
    return write_html(notebook, results, request.get("title") or "notebook", request.get("assetUrl"))
