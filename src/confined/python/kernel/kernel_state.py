"""The part of the bridge's state for this process's kernel that marimo does not keep."""

import msgspec

from kernel.scratch_names import ScratchNames


class Asked(msgspec.Struct):
    """The members of a command that the bridge uses and marimo does not."""

    seq: int | None = None
    fresh: bool = False
    reactive: bool = False
    judge: list[str] | None = None
    keep: bool = False  # whether names that scratchpad code defines stay for later code
    traceparent: str | None = None  # the W3C trace context, for the environment of the code
    environment: dict[str, str] = {}


class State:
    """Made empty in the zygote; `bridge.serve` fills it in a kernel."""

    def __init__(self):
        self.outbox = None
        self.interrupts = None
        self.asked = {}  # id(command), or a token -> Asked; commands of the kernel itself have none
        self.unanswered = set()  # seqs of commands that the server waits for; the reader thread adds to it
        self.begin_work = None  # called once, before the first command
        self.running = []  # `Asked` of each command in flight; code mode nests commands
        self.run_depth = 0  # the number of runs of cells that are under way; code mode nests runs
        self.is_fork = False  # whether this process is a copy that notebook code has forked
        self.is_traced = False  # whether the bridge has set TRACEPARENT
        self.interrupted = False  # whether an interrupt has ended a part of the command in flight
        self.element_files = None  # the files that pages have sent to elements
        self.element_failures = None  # id of an element -> (error, failure), while a command sets values of elements
        self.updates = 0  # elements whose values are being set, each within the one before
        self.unparsable = {}  # cell id -> errors of cells that never reach the graph (syntax, import *)
        self.shown = None  # (data, value) of the latest formatting, until it is sent
        self.shown_unrun = set()  # cells of the run under way that are shown although they did not run
        self.scratch_names = ScratchNames()
        self.verdicts = None  # set by verdicts.py, when the zygote imports it
        self.stopped = set()  # cells whose last run ended in mo.stop(), an "exception" to marimo

    def take_shown(self, data):
        """Returns the value that was formatted as `data`, and forgets it; None when it is not known."""
        shown, self.shown = self.shown, None
        return shown[1] if shown and shown[0] is data else None


STATE = State()
