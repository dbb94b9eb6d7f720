"""The life of one forked kernel process, from the fork to its end. None of these functions returns to the zygote's
loop.

Order matters: connect and receive the launch, confine, and only then threads and marimo, for Landlock and seccomp bind
the calling thread alone. The process has its own session and group (marimo calls setsid), stdio on /dev/null once it
works, and nothing of the zygote but its memory. Until then its standard error is a file that the zygote reads if it
fails.
"""

import importlib
import os
import resource
import signal
import sys
import tempfile
import time

import msgspec
from marimo._ast.cell import CellConfig
from marimo._cli.parse_args import parse_args
from marimo._config.config import MarimoConfig
from marimo._runtime.commands import AppMetadata
from marimo._types.ids import CellId_t

import processes
from confinement import syscalls
from connection import Connection
from forking import warm
from kernel import bridge
from kernel.interrupts import Interrupts
from kernel.outbox import Outbox
from session_priority import SessionPriority

GRACE_CPU_S = 5
HOST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Launch(msgspec.Struct, kw_only=True):
    """The launch of a kernel."""

    cwd: str
    env: dict[str, str]
    user_config: MarimoConfig
    app_metadata: AppMetadata
    configs: dict[CellId_t, CellConfig] = {}
    packages: str | None = None  # a folder of packages that win over the packages of this Python


decode_launch = msgspec.json.Decoder(Launch).decode


def run(order, forked_at, host_modules, confinement, link):
    """Becomes the kernel that `order` asks for. `link`: the end of a pipe that notebook code must not have, or None."""
    connection = Connection(order.connection, decode_launch)
    launch = connection.launch
    reopen_stdio()
    if confinement:
        confinement.reach(work=launch.cwd, read=[launch.packages] if launch.packages else ())
        confinement.start(link)  # where there are namespaces, it comes back in a child of this process
    if link is not None:
        os.close(link)
    os.umask(0o077)
    os.chdir(launch.cwd)
    limit({"CORE": 0, **order.limits, **({"DATA": order.memory} if order.memory else {})})
    yield_to_server(order.nice)
    session = SessionPriority()
    if confinement:
        confinement.finish()
    # Set after confinement only: the notebook chooses these variables, and libc opens files that some of them name, such as TZ.
    set_environment(launch.env | (confinement.variables if confinement else {}))
    processes.call_this("kernel")
    # adopts the orphans of cells; when this process dies, the zygote gets them and kills them
    syscalls.become_subreaper()
    syscalls.set_dumpable(True)  # the zygote is not; a kernel must own its /proc/self
    warm.seed()
    if launch.packages:
        add_packages(launch.packages)
    forget(host_modules)
    ready = {"ms": round((time.perf_counter() - forked_at) * 1000, 2)}
    launch.app_metadata.cli_args = parse_args(launch.app_metadata.argv or [])
    notebook = (launch.user_config, launch.app_metadata, launch.configs)

    def begin():
        begin_work()
        session.give_way(order.nice)  # which marimo has made this process the leader of by now

    frames, interrupts = frames_until_end(connection.frames), Interrupts(connection.reader)
    bridge.serve(Outbox(connection.sock), frames, interrupts, ready, *notebook, begin)
    os._exit(0)  # never the zygote's atexit


def reopen_stdio():
    """Opens Python's own standard streams again, which marimo redirects while a cell runs."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False, errors="backslashreplace")


def begin_work():
    """Discards output from here on, and earlier output, which explains no failure because the process has started.
    Called before notebook code runs, so that none of it can write there."""
    os.ftruncate(2, 0)
    os.dup2(1, 2)  # which is /dev/null


def set_environment(env):
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    tempfile.tempdir = None  # it remembers the zygote's


def limit(limits):
    """Sets soft and hard limits. A limit that is stricter already stays."""
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, most = resource.getrlimit(kind)
        # over the lower limit of processor time SIGXCPU says why; over the upper one there is only SIGKILL
        soft, hard = value, value + GRACE_CPU_S if name == "CPU" else value
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(kind, (soft, hard))


def yield_to_server(nice):
    """Lets the server go first when there is too little processor time or memory for all."""
    os.nice(nice)
    syscalls.set_dumpable(True)  # else /proc/self is root's
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:  # no /proc, or a read-only one
        pass


def add_packages(folder):
    """Makes the packages in this folder win over those of the interpreter, in this process. For the programs it starts,
    PYTHONPATH does that, which the server sets. Modules that are loaded already stay, so the folder may hold none of
    them."""
    at = next((i for i, path in enumerate(sys.path) if path.endswith("site-packages")), len(sys.path))
    sys.path.insert(at, folder)
    importlib.invalidate_caches()
    warm.forget_entry_points()


def find_host_modules() -> list[str]:
    """Returns the names of our modules. Called in the zygote: in a kernel, looking at every module would copy its page."""
    return [
        name
        for name, module in sys.modules.items()
        if name != "__main__" and (getattr(module, "__file__", None) or "").startswith(HOST + os.sep)
    ]


def forget(modules):
    """Forgets our modules, so that a notebook's own `import console` finds its own file."""
    for name in modules:
        sys.modules.pop(name, None)


def frames_until_end(frames):
    """Yields the server's frames. When the server is gone, ends this process with its whole group."""
    yield from frames
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)  # the first process of a pid namespace does not die of its own SIGKILL
