"""What the server may ask of the zygote, one JSON document per line of its stdin; anything else is refused by name."""

import resource

import msgspec
from marimo._ast.cell import CellConfig
from marimo._config.config import MarimoConfig
from marimo._runtime.commands import AppMetadata
from marimo._types.ids import CellId_t

from confinement.session import Wanted


class Connection(msgspec.Struct, kw_only=True):
    """A listening unix socket that is there for one process, and the word by which that process is known."""

    id: str
    socket_path: str
    token: str
    # bytes that all its processes use together; without control groups also that each of them reserves
    memory: int | None = None
    confine: Wanted | None = None  # null leaves it unconfined


class Fork(Connection, kw_only=True, tag_field="op", tag="fork"):
    """Start a kernel."""

    cwd: str
    env: dict[str, str]
    user_config: MarimoConfig
    app_metadata: AppMetadata
    configs: dict[CellId_t, CellConfig] = {}
    # rlimits by name, as in {"DATA": bytes}: DATA counts memory, AS also what is only reserved
    limits: dict[str, int] = {}
    nice: int = 0  # how much processor time it leaves to others, from 0 to 19
    preload_seed: int | None = None  # seeds random and numpy.random; null: from the system

    def __post_init__(self):
        for name in self.limits:
            if not hasattr(resource, f"RLIMIT_{name}"):
                raise ValueError(f"no such limit: {name}")


class Convert(Connection, kw_only=True, tag_field="op", tag="convert"):
    """Start a process that reads or writes one notebook file; see convert.py."""

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


class RunProgram(Connection, kw_only=True, tag_field="op", tag="program"):
    """Start another program, the first of `arguments`; see program.py."""

    arguments: list[str]
    env: dict[str, str]


class Signal(msgspec.Struct, kw_only=True, tag_field="op", tag="signal"):
    """Signal a kernel: 2 goes to its whole group, so that children of its cells are interrupted, too."""

    id: str
    signal: int


DIRECTIONS = {("read", "py"), ("read", "ipynb"), ("read", "md")} | {
    ("write", kind) for kind in ("py", "ipynb", "md", "html")
}
ENGINES = ("sqlite", "duckdb", "files")
MODES = ("probe", "read", "write")
decode = msgspec.json.Decoder(Fork | Convert | Engine | JudgeSyntax | RunProgram | Signal).decode
