"""Embedded databases: SQLite and DuckDB over one file or folder of a workspace.

Runs in a child of the zygote, because both are native code that executes statements of users on files of users: confined
like a kernel, but with nothing except that workspace's files, without network and without a way to start programs
(confinement/narrow.py). What a statement may do is decided a second time by the database itself: engine_sqlite.py and
engine_duckdb.py hold what is allowed.

Over the socket that the order names, one request at a time, each with one answer:

    from us    {"op":"engine-ready","token"}
    to us      {"op":"open"}                        looks whether the database can be used
               {"op":"query","sql","parameters"}    parameters as in engine_rows.py
               {"op":"next"}                        the next rows of the statement
               {"op":"end"}                         gives the statement up
    from us    {"op":"opened"}   {"op":"columns","columns"} (null: it gives no rows)   {"op":"ended"}
               the rows, as engine_rows.py encodes them; none at the end
               {"op":"failed","category","detail"}

The database is opened anew when its file was replaced, so a process can be kept between statements.
"""

import contextlib
import importlib.util
import os
import sys

import msgspec

import kernel_process
import processes
from confinement import narrow, ownership, views
from engine_failure import EngineFailure
from engine_files import Workspace, uses_wal
from frames import FROM_KERNEL, frame, read_frames
from session_priority import SessionPriority

PRIORITY_WITHIN_S = 0.5
PACKAGES = {"sqlite": "apsw", "duckdb": "duckdb", "files": "duckdb"}


def run(order, confinement, link):
    """Serves one database until the server is gone. `link`: the end of a pipe that a session's init needs."""
    sock = kernel_process.connect(order.socket_path)
    kernel_process.reopen_stdio()
    folder = os.path.realpath(order.folder)
    writes = needs_to_write(order, folder)
    engine = load(order, folder)  # while our own modules can be read
    if confinement:
        if confinement.found.root:
            ownership.give(folder, confinement.kernel_uid or confinement.found.uid)
        (confinement.write if writes else confinement.read).append(folder)
        confinement.start(link)
    if link is not None:
        os.close(link)
    else:
        os.setsid()  # else its process group would be the zygote's, which kill(0, …) reaches
    os.environ.clear()
    os.umask(0o077)
    os.chdir("/")
    kernel_process.limit({"CORE": 0, **order.limits, **({"DATA": order.memory} if order.memory else {})})
    kernel_process.yield_to_server(order.nice)
    SessionPriority().give_way_soon(order.nice, PRIORITY_WITHIN_S)
    if confinement:
        confinement.finish()
        narrow.narrow(confinement.found, find_readable(order), folder, writes)
    processes.call_this("engine")
    sock.sendall(frame(FROM_KERNEL, msgspec.json.encode({"op": "engine-ready", "token": order.token})))
    kernel_process.begin_work()
    for _, body in read_frames(sock):
        sock.sendall(frame(FROM_KERNEL, answer(engine, msgspec.json.decode(body))))
        engine.rest()
    os._exit(0)


def needs_to_write(order, folder) -> bool:
    """Returns whether the process has to change files. Even a reader of a SQLite database with a write-ahead log takes part in
    keeping its index."""
    if order.engine != "sqlite" or order.mode == "probe":
        return False
    if order.mode == "write":
        return True
    try:
        place = Workspace(folder).find(order.path)
    except EngineFailure:
        return False
    with contextlib.closing(place):
        return uses_wal(place)


LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/dev/null", "/dev/urandom")
# DuckDB crashes when it cannot learn how much memory there is
OF_DUCKDB = ("/proc/self/cgroup", "/sys/fs/cgroup")


def find_readable(order) -> list[str]:
    """Returns what the process may read in addition to the workspace."""
    if PACKAGES[order.engine] != "duckdb":
        return [*views.find_python(), *LIBRARIES]
    if os.path.exists(OF_DUCKDB[0]):
        os.open(OF_DUCKDB[0], os.O_PATH | os.O_CLOEXEC)  # stays open: the rule for it goes with the system's memory of it
    return [*views.find_python(), *LIBRARIES, *OF_DUCKDB]


def load(order, folder):
    """Returns the database that the order names, not opened yet, or an object that says which package is missing."""
    package = PACKAGES[order.engine]
    if importlib.util.find_spec(package) is None:
        return Missing(package)
    sys.path.insert(0, kernel_process.HOST)  # the zygote's path has no modules of ours, for the sake of notebooks
    workspace = Workspace(folder)
    if order.engine == "sqlite":
        from engine_sqlite import SqliteEngine

        return SqliteEngine(workspace, order.path, order.mode)
    from engine_duckdb import DuckdbEngine

    return DuckdbEngine(workspace, order.path, is_files=order.engine == "files")


class Missing:
    """In the place of an engine whose package this Python does not have."""

    def __init__(self, package):
        self.package = package

    def open(self):
        raise EngineFailure("package_missing", self.package)

    query = next = end = lambda self, *_: self.open()

    def rest(self):
        pass


def answer(engine, request) -> bytes:
    """Returns the answer to one request. A failure is an answer too."""
    try:
        match request["op"]:
            case "open":
                engine.open()
                return encode(op="opened")
            case "query":
                return encode(op="columns", columns=engine.query(request["sql"], request["parameters"]))
            case "next":
                return engine.next()
            case "end":
                engine.end()
                return encode(op="ended")
        raise EngineFailure("failed")
    except EngineFailure as failure:
        return encode(op="failed", category=failure.category, detail=failure.detail)
    except MemoryError:
        return encode(op="failed", category="query", detail="The statement needs more memory than there is for it.")


def encode(**message) -> bytes:
    return msgspec.json.encode(message)
