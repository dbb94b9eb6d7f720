"""Runs notebooks in unmodified marimo kernels, and reports what each cell showed. None of Troupe's code is loaded here.

One process forks a kernel for each notebook, so that marimo and the usual libraries are imported once. As in Troupe, a
kernel has a folder of its own as its home and working directory, and sends pictures as data URLs (marimo's own server
would keep them as virtual files).

    stdin   {"name", "path", "folder", "opens"}      one line for each notebook; the end of it ends this process
    stdout  {"name", "cells": [{"id", "name", "code", "status", "output", "console"}]}   or {"name", "error"}
"""

import importlib.util
import json
import os
import queue
import sys
import threading
import traceback

PRELOADED = "numpy pyarrow pandas duckdb sqlglot altair matplotlib.pyplot"
LIMIT_S = 120


class Notifications:
    """The queue into which a kernel puts its notifications."""

    def __init__(self, commands):
        self.received = []
        self.ended = threading.Event()
        self.left = commands

    def put(self, data, block=True, timeout=None):
        message = json.loads(data)
        self.received.append(message)
        if message["op"] == "completed-run":
            self.left -= 1
            if self.left == 0:
                self.ended.set()

    put_nowait = put


class NoAnswers:
    """Replaces the queue of answers to input(): nobody gives one."""

    def get(self):
        raise EOFError("nobody can answer input() or a debugger here")


def run(path, folder, opens, send):
    """Opens the notebook at `path`, runs all of it as "run all" of marimo's editor does, and passes the report to `send`.
    With `opens`, the run is the one by which the editor opens a notebook, which leaves out cells that are only Markdown."""
    from marimo._config.config import DEFAULT_CONFIG
    from marimo._runtime import commands, runtime
    from marimo._session.notebook import AppFileManager

    os.environ["HOME"] = os.environ["MPLCONFIGDIR"] = folder
    os.chdir(folder)
    manager = AppFileManager(path)
    cells = manager.app.cell_manager
    requests = tuple(
        commands.ExecuteCellCommand(cell_id=cell_id, code=code)
        for cell_id, code in zip(cells.cell_ids(), cells.codes(), strict=True)
    )
    control, notifications = queue.Queue(), Notifications(1 if opens else 2)
    control.put(
        commands.CreateNotebookCommand(
            execution_requests=requests,
            cell_ids=tuple(cells.cell_ids()),
            set_ui_element_value_request=commands.UpdateUIElementCommand(object_ids=[], values=[]),
            auto_run=opens,
        )
    )
    if not opens:
        control.put(commands.ExecuteCellsCommand(cell_ids=list(cells.cell_ids()), codes=list(cells.codes())))

    def report():
        if not notifications.ended.wait(LIMIT_S):
            send({"error": f"it did not end within {LIMIT_S} s"})
            os._exit(0)
        send({"cells": list(describe(requests, cells.names(), notifications.received))})
        os._exit(0)

    threading.Thread(target=report, daemon=True).start()
    runtime.launch_kernel(
        control_queue=control,
        set_ui_element_queue=queue.Queue(),
        completion_queue=queue.Queue(),
        input_queue=NoAnswers(),
        stream_queue=notifications,
        socket_addr=None,
        is_edit_mode=True,
        configs=dict(cells.config_map()),
        app_metadata=commands.AppMetadata(
            query_params={}, cli_args={}, app_config=manager.app.config, argv=[], filename=path
        ),
        user_config=DEFAULT_CONFIG,
        virtual_file_storage=None,
        redirect_console_to_browser=True,
        log_level=30,
        is_ipc=True,
    )


def describe(requests, names, messages):
    """Yields the state of each cell at the end, folded as marimo's front end does."""
    shown = {request.cell_id: {"output": None, "console": [], "ran": False} for request in requests}
    for message in messages:
        if message["op"] == "execution" and message["phase"] == "running" and message["cell_id"] in shown:
            shown[message["cell_id"]]["ran"] = True
        if message["op"] != "cell-op" or message["cell_id"] not in shown:
            continue
        cell = shown[message["cell_id"]]
        if message["output"] is not None:
            cell["output"] = plain(message["output"])
            cell["ran"] |= message["output"]["data"] != ""  # only Markdown, shown without a run
        if message["console"] == []:
            cell["console"] = []
        elif message["console"] is not None:
            cell["console"].append(plain(message["console"]))
    for request, name in zip(requests, names, strict=True):
        cell = shown[request.cell_id]
        errors = cell["output"]["data"] if cell["output"] and cell["output"]["channel"] == "marimo-error" else []
        yield {
            "id": request.cell_id,
            "name": name,
            "code": request.code,
            "status": find_status(errors, cell["ran"]),
            "output": cell["output"],
            "console": cell["console"],
        }


def plain(entry):
    return {name: value for name, value in entry.items() if name != "timestamp"}


def find_status(errors, ran):
    kinds = {error.get("exception_type") or error["type"] for error in errors}
    if kinds & {"ancestor-prevented", "ancestor-stopped", "Ancestor raised"}:
        return "cancelled"
    return "error" if kinds else "success" if ran else "not run"


def fork(order):
    """Runs one notebook in a child, and returns its report."""
    link, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(link)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)

        def send(report):
            with os.fdopen(os.dup(theirs), "w") as stream:
                json.dump(report, stream)

        try:
            run(order["path"], order["folder"], order["opens"], send)
        except BaseException:
            send({"error": traceback.format_exc()})
        finally:
            os._exit(1)
    os.close(theirs)
    with os.fdopen(link) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else {"error": "the kernel ended without a report"}


def main():
    import marimo  # noqa: F401

    for name in PRELOADED.split():
        # where there are widgets, altair imports IPython, whose `display` marimo has to replace first
        if name != "altair" or importlib.util.find_spec("anywidget") is None:
            __import__(name)
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps({"name": order["name"], **fork(order)}), flush=True)


if __name__ == "__main__":
    main()
