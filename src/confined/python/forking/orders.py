"""The orders that the server may give the zygote, one JSON document per line of its stdin. All else is refused.

An order names the kind of process to fork, its limits, and the socket to which it connects. Everything that belongs to
a workspace comes over that connection (connection.py): later kernels inherit the memory in which orders are read.
"""

import resource
from typing import Annotated, ClassVar

import msgspec

from confinement.session import Wanted

Id = Annotated[str, msgspec.Meta(max_length=64)]


class Order(msgspec.Struct, kw_only=True):
    """Forks a process that connects to the server."""

    writes_files: ClassVar[bool] = False  # whether such a process changes modes and times of files

    id: Id
    connection: msgspec.Raw  # the process's own address (see connection.Address), as a view of the order's line
    # bytes that all its processes may use together; without control groups also the bytes that each
    # may reserve
    memory: int | None = None
    # processes with the same share may together use as much memory as the first of them
    share: Id | None = None
    # rlimits by name, as in {"DATA": bytes}: DATA counts memory, AS also memory that is only reserved
    limits: dict[str, int] = {}
    nice: int = 0  # how strongly it gives way when there is too little processor time, from 0 to 19
    confine: Wanted | None = None  # None: the process is not confined

    def __post_init__(self):
        for name in self.limits:
            if not hasattr(resource, f"RLIMIT_{name}"):
                raise ValueError(f"no such limit: {name}")


class Fork(Order, tag_field="op", tag="fork"):
    """Starts a kernel; see kernel_process.py."""

    writes_files: ClassVar[bool] = True

    # the kernel is the check that kernels start: it gets a newly made spare, and none is made for
    # the next order
    is_proof: bool = False


class Convert(Order, tag_field="op", tag="convert"):
    """Starts a process that reads or writes one notebook file; see convert.py."""


class Engine(Order, tag_field="op", tag="engine"):
    """Starts a process for one embedded database; see engine.py."""


class JudgeSyntax(Order, tag_field="op", tag="syntax"):
    """Starts a process that says whether code parses; see syntax.py."""


# The kinds that may get a spare when they count towards a workspace: each process answers one request.
BRIEF = (Convert, JudgeSyntax)


class Install(Order, tag_field="op", tag="install"):
    """Starts a process that finds out which packages a notebook needs, or installs them; see installer.py."""

    writes_files: ClassVar[bool] = True


class RunProgram(Order, tag_field="op", tag="program"):
    """Starts another program; see program.py."""

    writes_files: ClassVar[bool] = True


class Signal(msgspec.Struct, kw_only=True, tag_field="op", tag="signal"):
    """Signals a kernel. SIGINT goes to its whole group, so that children of its cells are
    interrupted too.
    """

    id: Id
    signal: int


class Weigh(msgspec.Struct, kw_only=True, tag_field="op", tag="weigh"):
    """Sets the weights of processor time that the control groups of kernels have, by the kernels' ids.
    """

    weights: dict[Id, Annotated[int, msgspec.Meta(ge=1, le=10_000)]]


class Ping(msgspec.Struct, kw_only=True, tag_field="op", tag="ping"):
    """Asks for a pong, by which the server knows that the zygote responds."""


decode = msgspec.json.Decoder(Fork | Convert | Engine | Install | JudgeSyntax | RunProgram | Signal | Weigh | Ping).decode
decode_for_kernels = msgspec.json.Decoder(Signal | Weigh).decode


def find_for_kernels(line) -> Signal | Weigh | None:
    """Returns the order if it is about existing kernels. Does not parse other orders, most of which are long.
    """
    try:
        return decode_for_kernels(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
