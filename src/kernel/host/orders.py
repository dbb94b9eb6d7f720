"""The orders that the server may give the zygote, one JSON document per line of its stdin. All else is refused."""

import resource

import msgspec
from marimo._ast.cell import CellConfig
from marimo._config.config import MarimoConfig
from marimo._runtime.commands import AppMetadata
from marimo._types.ids import CellId_t

from confinement.session import Wanted


class Connection(msgspec.Struct, kw_only=True):
    """A unix socket that listens for one process, and the token by which that process identifies itself."""

    id: str
    socket_path: str
    token: str
    # bytes that all its processes use together; without control groups also that each of them reserves
    memory: int | None = None
    confine: Wanted | None = None  # null leaves it unconfined


class Fork(Connection, kw_only=True, tag_field="op", tag="fork"):
    """Starts a kernel."""

    cwd: str
    env: dict[str, str]
    user_config: MarimoConfig
    app_metadata: AppMetadata
    configs: dict[CellId_t, CellConfig] = {}
    # rlimits by name, as in {"DATA": bytes}: DATA counts memory, AS also what is only reserved
    limits: dict[str, int] = {}
    nice: int = 0  # how much processor time it leaves to others, from 0 to 19
    packages: str | None = None  # a folder of packages that wins over those of this Python

    def __post_init__(self):
        for name in self.limits:
            if not hasattr(resource, f"RLIMIT_{name}"):
                raise ValueError(f"no such limit: {name}")


class Convert(Connection, kw_only=True, tag_field="op", tag="convert"):
    """Starts a process that reads or writes one notebook file; see convert.py."""

    direction: str
    format: str

    def __post_init__(self):
        if (self.direction, self.format) not in DIRECTIONS:
            raise ValueError(f"cannot {self.direction} {self.format}")


class Engine(Connection, kw_only=True, tag_field="op", tag="engine"):
    """Start a process for one embedded database; see engine.py."""

    engine: str
    folder: str  # of the workspace's files
    path: str  # in that folder
    mode: str
    limits: dict[str, int] = {}
    nice: int = 0

    def __post_init__(self):
        if self.engine not in ENGINES or self.mode not in MODES:
            raise ValueError(f"there is no engine {self.engine} for {self.mode}")


class JudgeSyntax(Connection, kw_only=True, tag_field="op", tag="syntax"):
    """Start a process that says whether code parses; see syntax.py."""


class Install(Connection, kw_only=True, tag_field="op", tag="install"):
    """Starts a process that finds out which packages a notebook needs, or installs them; see installer.py."""


class RunProgram(Connection, kw_only=True, tag_field="op", tag="program"):
    """Starts another program, the first of `arguments`; see program.py."""

    arguments: list[str]
    env: dict[str, str]


class Signal(msgspec.Struct, kw_only=True, tag_field="op", tag="signal"):
    """Signals a kernel: SIGINT goes to its whole group, so that children of its cells are interrupted, too."""

    id: str
    signal: int


class Ping(msgspec.Struct, kw_only=True, tag_field="op", tag="ping"):
    """Asks for a pong, by which the server knows that the zygote responds."""


DIRECTIONS = {("read", "py"), ("read", "ipynb"), ("read", "md")} | {
    ("write", kind) for kind in ("py", "ipynb", "md", "html")
}
ENGINES = ("sqlite", "duckdb", "files")
MODES = ("probe", "read", "write")
decode = msgspec.json.Decoder(Fork | Convert | Engine | Install | JudgeSyntax | RunProgram | Signal | Ping).decode
decode_signal = msgspec.json.Decoder(Signal).decode


def find_signal(line: bytes) -> Signal | None:
    """Returns the order if it is a signal: without a look at the rest of other orders, most of which are long."""
    try:
        return decode_signal(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
