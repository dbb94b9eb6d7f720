"""The result of one command of a kernel."""


class KernelLost(Exception):
    """Raised when the kernel's socket has ended; args[0] is the last message."""


class Outcome:
    """The result of one command, folded from its messages. `cells` has the state of every cell, `done` only of those that may have
    changed."""

    def __init__(self, done, messages, cells):
        self.done, self.messages, self.cells = done, messages, cells
        ops = [message for message in messages if message["op"] == "cell-op"]
        lines = [
            line for op in ops for line in ([op["console"]] if isinstance(op["console"], dict) else op["console"] or [])
        ]
        self.ran = [op["cell_id"] for op in ops if op["status"] == "running"]
        self.outputs = {op["cell_id"]: op["output"] for op in ops if op["output"]}
        self.printed = "".join(line["data"] for line in lines if line["mimetype"] == "text/plain")
        # a traceback in code mode has only its text
        shown = [line for line in lines if line["mimetype"] == "application/vnd.marimo+traceback"]
        self.tracebacks = [line.get("text", line["data"]) for line in shown]

    def status(self, id):
        return self.cells[id][0]

    def stale(self):
        return sorted(id for id, (_, stale, _) in self.cells.items() if stale)

    def structural(self):
        return {id: [error["type"] for error in errors] for id, (_, _, errors) in self.cells.items() if errors}

    def error_of(self, id):
        output = self.outputs.get(id)
        return output["data"][0] if output and output["channel"] == "marimo-error" else None
