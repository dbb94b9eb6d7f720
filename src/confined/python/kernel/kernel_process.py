"""The life of one forked kernel process, from the fork to its end. None of these functions returns to the zygote's
loop.

The order matters: connect and receive the launch, confine, and only then start threads and marimo. Landlock and
seccomp bind only the calling thread. The process has its own session and group (marimo calls setsid), stdio on
/dev/null once it works, and nothing of the zygote but its memory. Until then its standard error is a file, which the
zygote reads if the start fails.
"""

import importlib
import os
import resource
import signal
import site
import sys
import tempfile
import time

import msgspec
from marimo._ast.cell import CellConfig
from marimo._cli.parse_args import parse_args
from marimo._config.config import MarimoConfig
from marimo._runtime.commands import AppMetadata
from marimo._types.ids import CellId_t
from marimo._utils.site_packages import _getsitepackages

import processes
from confinement import syscalls
from connection import Connection
from forking import warm
from kernel import bridge
from kernel.element_files import ElementFiles
from kernel.interrupts import Interrupts
from kernel.kernel_state import STATE
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
    element_files: str | None = None  # the folder, below `cwd`, of the files that pages send to elements
    packages: str | None = None  # a folder of packages that win over the packages of this Python
    # the folder of the server's interpreter, which is another one where the kernel is on another machine
    interpreters: str


decode_launch = msgspec.json.Decoder(Launch).decode


def run(order, forked_at, host_modules, confinement, link):
    """Becomes the kernel that `order` asks for. `link`: the end of a pipe that notebook code must not have, or None."""
    connection = Connection(order.connection, decode_launch)
    launch = connection.launch
    reopen_stdio()
    if confinement:
        confinement.reach(work=launch.cwd, read=[launch.packages] if launch.packages else ())
        confinement.start(link, order.nice)  # with an init or a supervisor, this returns in a child of this process
    if link is not None:
        os.close(link)
    os.umask(0o077)
    os.chdir(launch.cwd)
    limit({"CORE": 0, **order.limits, **({"DATA": order.memory} if order.memory else {})})
    yield_to_server(order.nice)
    session = SessionPriority()
    if confinement:
        confinement.finish()
    # Called only after confinement, because the notebook chooses these variables and libc opens
    # files that some of them name, such as TZ.
    env = launch.env | {"PATH": with_own_interpreter(launch.env.get("PATH", ""), launch.interpreters)}
    set_environment(env | (confinement.variables if confinement else {}))
    processes.call_this("kernel")
    # adopts the orphans of cells; when this process dies, the zygote adopts and kills these
    syscalls.become_subreaper()
    syscalls.set_dumpable(True)  # the zygote is not dumpable, but a kernel must own its /proc/self
    warm.seed()
    if launch.packages:
        add_packages(launch.packages)
    forget(host_modules)
    ready = {"ms": round((time.perf_counter() - forked_at) * 1000, 2)}
    if launch.element_files:
        STATE.element_files = ElementFiles(launch.cwd, launch.element_files)
    launch.app_metadata.cli_args = parse_args(launch.app_metadata.argv or [])
    notebook = (launch.user_config, launch.app_metadata, launch.configs)

    def begin():
        begin_work()
        session.give_way(order.nice)  # marimo has made this process the leader of the group by now

    frames, interrupts = frames_until_end(connection.frames), Interrupts(connection.reader)
    bridge.serve(Outbox(connection.sock), frames, interrupts, ready, *notebook, begin)
    os._exit(0)  # sys.exit() would call the exit handlers of the zygote


def reopen_stdio():
    """Opens Python's own standard streams again, which marimo redirects while a cell runs."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False, errors="backslashreplace")


def begin_work():
    """Discards output from now on. Earlier output is discarded as well, because the process has started and so there is
    no failure to explain. Called before notebook code runs, which then cannot write there."""
    os.ftruncate(2, 0)
    os.dup2(1, 2)  # descriptor 1 is /dev/null


def with_own_interpreter(path, interpreters):
    """Returns the search path with the folder of this interpreter in the place of the server's."""
    own = os.path.dirname(sys.executable)
    return os.pathsep.join(own if folder == interpreters else folder for folder in path.split(os.pathsep))


def set_environment(env):
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    tempfile.tempdir = None  # otherwise the directory of the zygote would be used


def limit(limits):
    """Sets soft and hard limits. A limit that is already stricter stays."""
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, most = resource.getrlimit(kind)
        # At the lower limit of processor time the process gets SIGXCPU, which names the reason; at the upper limit it gets
        # SIGKILL, which does not.
        soft, hard = value, value + GRACE_CPU_S if name == "CPU" else value
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(kind, (soft, hard))


def yield_to_server(nice):
    """Lets the server go first when there is too little processor time or memory for all."""
    os.nice(nice)
    syscalls.set_dumpable(True)  # otherwise /proc/self would belong to root
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:  # /proc is missing or read-only
        pass


def add_packages(folder):
    """
    Makes the packages in this folder win over those of the interpreter, in this process. For the programs it starts,
    PYTHONPATH does that, which the server sets. Forgets loaded packages of which this folder has another version.
    marimo continues with the modules that it has imported.
    """
    at = next((i for i, path in enumerate(sys.path) if path.endswith("site-packages")), len(sys.path))
    sys.path.insert(at, folder)
    replaced = {name.partition(".")[0] for name in os.listdir(folder)} & set(sys.modules) - {"marimo"}
    if replaced:
        forget([name for name in sys.modules if name.partition(".")[0] in replaced])
    # marimo shows objects of plotly, bokeh and others in its own way only where their packages are not local files of a notebook.
    others = site.getsitepackages()
    site.getsitepackages = lambda _prefixes=None: [os.path.realpath(folder), *others]
    _getsitepackages.cache_clear()
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
