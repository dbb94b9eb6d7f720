"""What we remember of a kernel, and marimo forgets."""

import msgspec


class Asked(msgspec.Struct):
    """What a command carries for us, beside what it carries for marimo."""

    seq: int | None = None
    fresh: bool = False
    judge: list[str] | None = None


class State:
    """What we remember and marimo forgets, for the one kernel of this process."""

    def __init__(self):
        self.outbox = None
        self.asked = {}  # id(command) -> Asked; commands that the kernel gives itself have none
        self.begin_work = None  # called once, before the first command
        self.running = []  # Asked of the commands in flight: code mode nests them
        self.interrupted = False  # whether an interrupt ended any of the command in flight
        self.unparsable = {}  # cell id -> errors of cells that never reach the graph (syntax, import *)
        self.stopped = set()  # cells whose last run ended in mo.stop(), an "exception" to marimo


STATE = State()
