"""How cells run, where marimo's way would mislead a server.

- Failed, cancelled, interrupted and never-run ancestors run again with their dependent.
- `"fresh": true` on execute-cells: all ancestors run again.
- Cells that an interrupt or a failure kept from running are stale, and say so.
- What was gathered to be sent goes out before notebook code runs.
- Tracebacks show no frames of this host: they are of no use to a reader, and name a path of the server.
"""

import os

from marimo._runtime.control_flow import MarimoStopError
from marimo._runtime.runner import cell_runner
from marimo._runtime.runner.cell_runner import Runner
from marimo._runtime.runner.result import RunResult
from marimo._runtime.runtime import Kernel
from marimo._runtime.scratch import SCRATCH_CELL_ID

from kernel_state import STATE

HOST = os.path.dirname(os.path.abspath(__file__)) + os.sep
UNFINISHED = (None, "exception", "cancelled", "interrupted")


def install():
    """Patches marimo in this process; once, in the zygote."""
    Kernel._run_cells = _run_cells(Kernel._run_cells)
    Kernel._propagate_kernel_errors = _note_stops(Kernel._propagate_kernel_errors)
    Kernel.function_call_request = _note_interrupted_call(Kernel.function_call_request)
    Runner.run = _send_before_notebook_code(Runner.run)
    Runner.run_all = _settle_run(Runner.run_all)
    cell_runner.unwrap_user_exception = _hide_host(cell_runner.unwrap_user_exception)


def _run_cells(run):
    async def run_cells(self, cell_ids):
        """Ancestors that did not succeed run again; marimo would repeat their old failure for ever."""
        cells = self.graph.cells
        ancestors = set().union(*(self.graph.ancestors(cell_id) for cell_id in cell_ids if cell_id in cells))
        fresh = bool(STATE.running) and STATE.running[-1].fresh
        redo = {
            i
            for i in ancestors - self.errors.keys()
            if not cells[i].stale and (fresh or cells[i].run_result_status in UNFINISHED)
        }
        if redo:
            self.graph.set_stale(redo, prune_imports=True)
        await run(self, cell_ids)

    return run_cells


def _note_stops(propagate):
    def propagate_kernel_errors(self, ctx):
        STATE.stopped.difference_update(ctx.exceptions)
        STATE.stopped.update(i for i, error in ctx.exceptions.items() if isinstance(error, MarimoStopError))
        propagate(self, ctx)

    return propagate_kernel_errors


def _settle_run(run_all):
    async def run_all_and_settle(self):
        self.finished = set()
        try:
            await run_all(self)
        finally:
            STATE.interrupted |= self.interrupted
            _settle_unrun(self.graph, self._run_position.keys() - self.finished - {SCRATCH_CELL_ID})

    return run_all_and_settle


def _settle_unrun(graph, planned):
    """Cells that an interrupt or a failure kept from running: marimo has deleted their variables, and calls them
    fresh."""
    unrun = {cell_id for cell_id in planned if cell_id in graph.cells and not graph.is_disabled(cell_id)}
    for cell in map(graph.cells.__getitem__, unrun):
        cell.set_run_result_status("cancelled")
        if cell.runtime_state in ("queued", "running"):  # the interrupt came between two steps of marimo's own
            cell.set_runtime_state("idle")
    if unrun:
        graph.set_stale(unrun, prune_imports=True)


def _note_interrupted_call(call):
    async def function_call_request(self, request):
        status, value, found = await call(self, request)
        STATE.interrupted |= status.title == "Interrupted"
        return status, value, found

    return function_call_request


def _send_before_notebook_code(run):
    async def run_and_send(self, cell_id):
        try:
            STATE.outbox.release()
        # it came while we sent; to marimo it must look as if the cell had raised it
        except KeyboardInterrupt as interrupt:
            self.cancel(cell_id)
            self.interrupted = True
            self.exceptions[cell_id] = interrupt
            result = RunResult(output=None, exception=interrupt)
        else:
            try:
                result = await run(self, cell_id)
            finally:
                STATE.outbox.gather()
        self.finished.add(cell_id)
        return result

    return run_and_send


def _hide_host(unwrap):
    def unwrap_user_exception(*args, **kwargs):
        exception = unwrap(*args, **kwargs)
        hide_frames(exception, set())
        return exception

    return unwrap_user_exception


def hide_frames(exception, seen):
    """Takes the frames of this host out of the tracebacks of an exception and of all that it came from."""
    if exception is None or id(exception) in seen:
        return
    seen.add(id(exception))
    exception.__traceback__ = _without_host(exception.__traceback__)
    for origin in (exception.__cause__, exception.__context__, *getattr(exception, "exceptions", ())):
        hide_frames(origin, seen)


def _without_host(traceback):
    while traceback and traceback.tb_frame.f_code.co_filename.startswith(HOST):
        traceback = traceback.tb_next
    shown = traceback
    while shown and shown.tb_next:
        if shown.tb_next.tb_frame.f_code.co_filename.startswith(HOST):
            shown.tb_next = shown.tb_next.tb_next
        else:
            shown = shown.tb_next
    return traceback
