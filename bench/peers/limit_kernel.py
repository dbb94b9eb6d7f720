"""Kernels without a server: a process that has marimo loaded forks one for each connection to a Unix socket.

python limit_kernel.py <socket> <folder of graph_scans.py>

The remaining cost of a run is marimo's own, with the known tunings: the entry points of packages are read once, and scans of the
graph are not repeated for every cell. Frames are a length (32 bits, little-endian) and JSON.
"""

import functools
import json
import os
import queue
import signal
import socket
import struct
import sys
import threading

import marimo  # noqa: F401
import msgspec
from marimo._ast.cell import CellConfig
from marimo._ast.compiler import compile_cell
from marimo._config.config import MarimoConfig
from marimo._entrypoints import registry
from marimo._runtime import commands, runtime
from marimo._runtime.runtime import Kernel
from marimo._types.ids import CellId_t
from marimo._utils.signals import SigintHandler

LATE_IMPORTS = """
    asyncio concurrent.futures.thread getpass pdb readline termios uuid webbrowser narwhals._interchange.dataframe
    marimo._runtime.kernel_lifecycle marimo._runtime.marimo_pdb marimo._runtime.params
    marimo._runtime.runner.hooks_post_execution marimo._runtime.runner.hooks_on_finish
    marimo._runtime.runner.hooks_pre_execution marimo._runtime.runner.hooks_preparation
    marimo._output.formatters.formatters marimo._output.formatting marimo._output.utils
    marimo._messaging.console_output_worker marimo._plugins.stateless.callout
"""


class Launch(msgspec.Struct, kw_only=True):
    user_config: MarimoConfig
    app_metadata: commands.AppMetadata
    configs: dict[CellId_t, CellConfig] = {}


class Outbox:
    """The queue into which marimo puts its notifications."""

    def __init__(self, sock):
        self.sock = sock
        self.lock = threading.Lock()

    def put(self, data, block=True, timeout=None):
        with SigintHandler.defer(), self.lock:
            self.sock.sendall(struct.pack("<I", len(data)) + data)

    put_nowait = put


def warm_up(folder):
    for name in LATE_IMPORTS.split():
        __import__(name)
    registry.entry_points = functools.cache(registry.entry_points)
    registry.entry_points()
    compile_cell("import marimo as mo\nx = 1", cell_id="x")
    sys.path.insert(0, folder)
    from kernel import graph_scans

    graph_scans.install()
    handle = Kernel.handle_message

    async def handle_message(self, request):
        try:
            await handle(self, request)
        finally:
            OUTBOX.put(b'{"op":"done"}')

    Kernel.handle_message = handle_message


def read_frames(sock):
    stream = sock.makefile("rb")
    while head := stream.read(4):
        yield stream.read(struct.unpack("<I", head)[0])
    os._exit(0)


def serve(sock, launch):
    global OUTBOX
    OUTBOX = Outbox(sock)
    control = queue.Queue()
    decode = msgspec.json.Decoder(commands.CommandMessage).decode

    def fill():
        for body in read_frames(sock):
            control.put(decode(body))

    OUTBOX.put(json.dumps({"op": "ready", "pid": os.getpid()}).encode())
    threading.Thread(target=fill, daemon=True).start()
    runtime.launch_kernel(
        control_queue=control,
        set_ui_element_queue=queue.Queue(),
        completion_queue=queue.Queue(),
        input_queue=queue.Queue(),
        stream_queue=OUTBOX,
        socket_addr=None,
        is_edit_mode=True,
        configs=launch.configs,
        app_metadata=launch.app_metadata,
        user_config=launch.user_config,
        virtual_file_storage=None,
        redirect_console_to_browser=True,
        log_level=30,
        is_ipc=True,
        parent_pid=None,
    )


def main(path, folder):
    with open(os.path.join(folder, "user_config.json"), "rb") as file:
        config = json.load(file)
    metadata = {"queryParams": {}, "cliArgs": {}, "appConfig": {}, "argv": [], "filename": None}
    launch = msgspec.convert({"user_config": config, "app_metadata": metadata}, Launch)
    warm_up(folder)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    print("listening", flush=True)
    while True:
        sock, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            serve(sock, launch)
            os._exit(0)
        sock.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
