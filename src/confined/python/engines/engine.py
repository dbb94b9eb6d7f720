"""Embedded databases: SQLite and DuckDB over one file or folder of a workspace.

Runs in a child of the zygote, because both are native code that executes statements of users on files of users. The
child is confined like a kernel, and more narrowly: it has only that workspace's files, no network, and cannot start
programs (confinement/narrow.py). The database itself checks statements a second time: sqlite_engine.py and
duckdb_engine.py define the permitted operations.

Over its connection to the server (connection.py), whose launch names the database, one request at a time, each with one
answer:

    from us    {"op":"engine-ready"}
    to us      {"op":"open"}                        looks whether the database can be used
               {"op":"query","sql","parameters"}    parameters as in rows.py
               {"op":"next"}                        the next rows of the statement
               {"op":"end"}                         gives the statement up
    from us    {"op":"opened"}   {"op":"columns","columns"} (null: it gives no rows)   {"op":"ended"}
               the rows, as rows.py encodes them; none at the end
               {"op":"failed","category","detail"}

The database is opened again when its file was replaced, so a process can be kept between statements.
"""

import contextlib
import importlib.util
import os
import sys

import msgspec

import processes
from confinement import narrow, ownership, views
from connection import Connection
from engines.failure import EngineFailure
from engines.workspace_files import Workspace, uses_wal
from frames import FROM_KERNEL, frame
from kernel import kernel_process
from session_priority import SessionPriority

PRIORITY_WITHIN_S = 0.5
PACKAGES = {"sqlite": "apsw", "duckdb": "duckdb", "files": "duckdb"}
MODES = ("probe", "read", "write")


class Launch(msgspec.Struct, kw_only=True):
    engine: str
    folder: str  # the folder of the workspace's files
    path: str  # the path in that folder
    mode: str

    def __post_init__(self):
        if self.engine not in PACKAGES or self.mode not in MODES:
            raise ValueError(f"there is no engine {self.engine} for {self.mode}")


decode_launch = msgspec.json.Decoder(Launch).decode


def run(order, confinement, link):
    """Serves one database until the server is gone. `link`: the end of a pipe that a session's init needs."""
    connection = Connection(order.connection, decode_launch)
    launch, sock = connection.launch, connection.sock
    kernel_process.reopen_stdio()
    folder = os.path.realpath(launch.folder)
    writes = needs_to_write(launch, folder)
    engine = load(launch, folder)  # loaded now, because the modules of this host cannot be read once the process is confined
    if confinement:
        if confinement.found.root:
            ownership.give(folder, confinement.kernel_uid or confinement.found.uid)
        confinement.reach(**{"write" if writes else "read": [folder]})
        confinement.start(link)
    if link is not None:
        os.close(link)
    else:
        os.setsid()  # otherwise its process group would be the zygote's, which kill(0, …) reaches
    os.environ.clear()
    os.umask(0o077)
    os.chdir("/")
    kernel_process.limit({"CORE": 0, **order.limits, **({"DATA": order.memory} if order.memory else {})})
    kernel_process.yield_to_server(order.nice)
    SessionPriority().give_way_soon(order.nice, PRIORITY_WITHIN_S)
    if confinement:
        confinement.finish()
        narrow.narrow(confinement.found, find_readable(launch), folder, writes)
    processes.call_this("engine")
    connection.say(op="engine-ready")
    kernel_process.begin_work()
    for _, body in connection.frames:
        sock.sendall(frame(FROM_KERNEL, answer(engine, msgspec.json.decode(body))))
        engine.rest()
    os._exit(0)


def needs_to_write(launch, folder) -> bool:
    """
    Returns whether the process has to change files. With a write-ahead log, even a process that only reads a SQLite
    database writes to the index of the log.
    """
    if launch.engine != "sqlite" or launch.mode == "probe":
        return False
    if launch.mode == "write":
        return True
    try:
        place = Workspace(folder).find(launch.path)
    except EngineFailure:
        return False
    with contextlib.closing(place):
        return uses_wal(place)


LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/dev/null", "/dev/urandom")
# DuckDB crashes when it cannot learn how much memory there is
OF_DUCKDB = ("/proc/self/cgroup", "/sys/fs/cgroup")


def find_readable(launch) -> list[str]:
    """Returns the paths that the process may read in addition to the workspace."""
    if PACKAGES[launch.engine] != "duckdb":
        return [*views.find_python(), *LIBRARIES]
    if os.path.exists(OF_DUCKDB[0]):
        os.open(OF_DUCKDB[0], os.O_PATH | os.O_CLOEXEC)  # stays open, because its rule is lost when the system forgets the file
    return [*views.find_python(), *LIBRARIES, *OF_DUCKDB]


def load(launch, folder):
    """Returns the database that the launch names, not opened yet, or an object that says which package is missing."""
    package = PACKAGES[launch.engine]
    if importlib.util.find_spec(package) is None:
        return Missing(package)
    sys.path.insert(0, kernel_process.HOST)  # not on the zygote's path: notebooks must not import this host
    workspace = Workspace(folder)
    if launch.engine == "sqlite":
        from engines.sqlite_engine import SqliteEngine

        return SqliteEngine(workspace, launch.path, launch.mode)
    from engines.duckdb_engine import DuckdbEngine

    return DuckdbEngine(workspace, launch.path, is_files=launch.engine == "files")


class Missing:
    """Stands for an engine whose package this Python does not have."""

    def __init__(self, package):
        self.package = package

    def open(self):
        raise EngineFailure("package_missing", self.package)

    changed = None
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
                columns = engine.query(request["sql"], request["parameters"])
                return encode(op="columns", columns=columns, changed=engine.changed)
            case "next":
                return engine.next()
            case "end":
                engine.end()
                return encode(op="ended")
        raise EngineFailure("failed")
    except EngineFailure as failure:
        return encode(op="failed", category=failure.category, detail=failure.detail)
    except MemoryError:
        return encode(op="failed", category="query", detail="The statement needs more memory than the engine may use.")


def encode(**message) -> bytes:
    return msgspec.json.encode(message)
