"""The server's side of the kernel host, as small as tests need it: a zygote, its kernels, and their messages."""

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from outcome import KernelLost, Outcome

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
HOST = os.path.join(ROOT, "src/confined/python")
CONTROL, UI, COMPLETION, INTERRUPT, LAUNCH = 1, 2, 3, 4, 6
SCRATCH = "__scratch__"
# Only a hang reaches it: forty kernels that start at once on a busy machine take longer than twenty seconds.
PATIENCE_S = 60

sys.path.insert(0, HOST)
with open(os.path.join(HOST, "user_config.json"), encoding="utf-8") as file:
    USER_CONFIG = json.load(file)


def wait_until(fact, what="the fact", patience_s=PATIENCE_S):
    """Polls a condition of the operating system that nothing announces; fails the test if it never
    becomes true.
    """
    deadline = time.monotonic() + patience_s
    while not (value := fact()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come in {patience_s} s")
        time.sleep(0.002)
    return value


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def find_marked(mark):
    """Pids of processes that have `mark` among their arguments."""

    def arguments(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().split(b"\0")
        except OSError:
            return []

    return [
        int(pid) for pid in os.listdir("/proc") if pid.isdigit() and mark.encode() in arguments(pid) and is_alive(pid)
    ]


class Frames:
    """One accepted socket, as frames of JSON."""

    def __init__(self, sock):
        self.socket = sock
        sock.settimeout(PATIENCE_S)
        self.stream = sock.makefile("rb")

    def send(self, channel, message):
        self.send_raw(channel, json.dumps(message).encode())

    def send_raw(self, channel, body):
        self.socket.sendall(struct.pack("<IB", len(body) + 1, channel) + body)

    def read(self):
        """The next message, or None when the other side is gone."""
        body = self.read_raw()
        return None if body is None else json.loads(body)

    def read_raw(self):
        try:
            head = self.stream.read(5)
        except ConnectionResetError:
            return None
        if len(head) < 5:
            return None
        length, channel = struct.unpack("<IB", head)
        assert channel == 0, f"a kernel sent on channel {channel}"
        body = self.stream.read(length - 1)
        return body if len(body) == length - 1 else None

    def close(self):
        self.stream.close()
        self.socket.close()


class Host:
    """A running zygote with a directory for its sockets and a directory for its kernels' files."""

    def __init__(self, preload="", env=None, python=sys.executable, parent=()):
        self.directory = tempfile.mkdtemp(prefix="kernel-host-")
        self.work = os.path.join(self.directory, "work")
        os.mkdir(self.work)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"TROUPE_PRELOAD": preload, **(env or {})}
        self.process = subprocess.Popen(
            [*parent, python, os.path.join(HOST, "zygote.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        self.lines = []
        self.sockets = []
        self.count = 0
        self.hello = self.wait_for("hello")

    def tell(self, **order):
        self.tell_raw(json.dumps(order).encode())

    def tell_raw(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def wait_for(self, op, id=None):
        """Returns the first line with that op (and id) that no earlier call has taken."""
        while True:
            for line in self.lines:
                if line["op"] == op and (id is None or line["id"] == id):
                    self.lines.remove(line)
                    return line
            text = self.process.stdout.readline()
            if not text:
                raise AssertionError(f"the zygote ended before it said {op}")
            self.lines.append(json.loads(text))

    def connect(self, launch, **order):
        """Gives an order that makes a process connect back, and sends it its launch. Returns (id,
        its frames).
        """
        self.count += 1
        id = f"k{self.count}"
        path = os.path.join(self.directory, id)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1)
            listener.settimeout(PATIENCE_S)
            self.tell(id=id, connection={"path": path, "token": f"token of {id}"}, **order)
            frames = Frames(listener.accept()[0])
        assert frames.read_raw() == f"token of {id}".encode()
        frames.send(LAUNCH, launch)
        os.unlink(path)
        self.sockets.append(frames)
        return id, frames

    def fork(self, cwd=None, env=None, packages=None, **order):
        work = cwd or self.work
        launch = {
            "cwd": work,
            "env": {"PATH": os.environ["PATH"], "HOME": work, "LANG": "C.UTF-8", **(env or {})},
            "interpreters": os.path.dirname(sys.executable),
            "user_config": USER_CONFIG,
            "app_metadata": {"queryParams": {}, "cliArgs": {}, "appConfig": {}, "argv": [], "filename": os.path.join(work, "notebook.py")},
            "packages": packages,
        }
        id, frames = self.connect(launch, op="fork", **order)
        return Kernel(self, id, frames)

    def open(self, cells=None, **order):
        kernel = self.fork(**order)
        kernel.open(cells or {})
        return kernel

    def await_conversion(self, direction, format, **order):
        """Returns (id, its frames) of a conversion that waits for its request."""
        id, frames = self.connect({"direction": direction, "format": format}, op="convert", **order)
        assert frames.read() == {"op": "convert-ready"}
        return id, frames

    def convert(self, direction, format, request, **order):
        id, frames = self.await_conversion(direction, format, **order)
        frames.send(CONTROL, request)
        done = frames.read()
        return done, self.wait_for("exited", id)

    def children(self):
        """Pids of the guardian's children: the zygote, and processes that the guardian has inherited."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]

    def stop(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        for frames in self.sockets:
            frames.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Kernel:
    """One kernel, one command at a time."""

    def __init__(self, host, id, frames):
        self.host, self.id, self.frames = host, id, frames
        self.seq = 0
        self.codes = {}
        self.deleted = set()
        self.verdicts = {}  # the state of every cell: an answer has only the cells that may have changed
        self.ready = frames.read()
        if self.ready is None:
            raise KernelLost([])
        if self.ready["op"] == "start-failed":
            raise KernelLost([self.ready])
        assert self.ready["op"] == "bridge-ready", self.ready
        self.pid = host.wait_for("forked", id)["pid"]

    def start(self, type, **fields):
        """Sends a command without waiting for its answer."""
        self.seq += 1
        self.deleted.update(fields.get("deleteIds", ()))
        if type == "delete-cell":
            self.deleted.add(fields["cellId"])
        self.frames.send(CONTROL, {"type": type, "seq": self.seq, **fields})
        return self.seq

    def finish(self, seq, before=()):
        """Returns all messages of the kernel until it has answered that command."""
        messages = list(before)
        while True:
            message = self.frames.read()
            if message is None:
                raise KernelLost(messages)
            messages.append(message)
            self.note(message)
            if message["op"] == "bridge-done" and message["seq"] == seq:
                return Outcome(message, messages, dict(self.verdicts))

    def command(self, type, **fields):
        return self.finish(self.start(type, **fields))

    def read_until(self, matches):
        """Returns the messages up to the first match."""
        messages = []
        while not messages or not matches(messages[-1]):
            message = self.frames.read()
            if message is None:
                raise KernelLost(messages)
            messages.append(message)
            self.note(message)
        return messages

    def note(self, message):
        if message["op"] == "bridge-done":
            self.verdicts.update(message["cells"])
        elif message["op"] == "notebook-document-transaction":
            for change in message["transaction"]["changes"]:
                if change["type"] == "delete-cell":
                    self.deleted.add(change["cellId"])
        for cell_id in self.deleted:
            self.verdicts.pop(cell_id, None)

    def open(self, cells, ui_values=None):
        self.codes = dict(cells)
        return self.command(
            "create-notebook",
            executionRequests=[{"cellId": id, "code": code, "request": None} for id, code in cells.items()],
            cellIds=list(cells),
            autoRun=False,
            request=None,
            setUiElementValueRequest={
                "type": "update-ui-element",
                "objectIds": list(ui_values or {}),
                "values": list((ui_values or {}).values()),
                "token": "t",
            },
        )

    def start_run(self, *ids, fresh=None, **codes):
        """Runs cells by id; a keyword gives a cell new code."""
        self.codes |= codes
        cell_ids = [*ids, *codes]
        more = {} if fresh is None else {"fresh": fresh}
        return self.start("execute-cells", cellIds=cell_ids, codes=[self.codes[id] for id in cell_ids], **more)

    def run(self, *ids, fresh=None, **codes):
        return self.finish(self.start_run(*ids, fresh=fresh, **codes))

    def start_scratchpad(self, code, revision=0, run_id="r"):
        config = {"column": None, "disabled": False, "hide_code": False}
        return self.start(
            "execute-scratchpad",
            code=code,
            runId=run_id,
            allowStdin=False,
            notebookCells=[
                {"id": id, "code": code, "version": 0, "name": "_", "config": config} for id, code in self.codes.items()
            ],
            cellOutputs={"output": {}, "console_outputs": {}},
            request={
                "url": {"path": "/api/kernel/execute"},
                **{name: {} for name in ("base_url", "headers", "query_params", "path_params", "cookies", "user")},
                "meta": {"revision": revision},
            },
        )

    def scratchpad(self, code, revision=0, run_id="r"):
        return self.finish(self.start_scratchpad(code, revision, run_id))

    def evaluate(self, expression):
        """Returns the value of an expression, as JSON, seen from the scratchpad."""
        return json.loads(self.scratchpad(f"import json as _json\nprint(_json.dumps({expression}))").printed)

    def interrupt(self, seq=None):
        """Interrupts as the server does: the command with this seq, or the last one that was sent."""
        self.announce_interrupt(self.seq if seq is None else seq)
        self.signal(signal.SIGINT)

    def announce_interrupt(self, seq):
        self.frames.send_raw(INTERRUPT, struct.pack("<I", seq))

    def signal(self, number):
        self.host.tell(op="signal", id=self.id, signal=int(number))

    def end(self):
        """Kills the kernel, and returns the zygote's report of its end."""
        self.signal(signal.SIGKILL)
        return self.host.wait_for("exited", self.id)
