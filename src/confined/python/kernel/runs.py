"""Changes to how cells run, where marimo's way would mislead a server.

- Failed, cancelled, interrupted and never-run ancestors run again with their dependent.
- `"fresh": true` on execute-cells: all ancestors run again.
- Cells that did not run because of an interrupt or a failure are reported as stale.
- Cells whose `mo.state` was set run again within the run.
- Code in the scratchpad that keeps its names gets the globals of earlier such code (scratch_names.py).
- Gathered notifications are sent before notebook code runs.
- Tracebacks show no frames of this host, nor of marimo's handler of interrupts. Such frames are of no use to a
  reader, and name a path of the server.
"""

import os

from marimo._messaging.cell_output import CellChannel, CellOutput
from marimo._messaging.notification import CellNotification
from marimo._messaging.notification_utils import broadcast_notification
from marimo._runtime.context import get_context
from marimo._runtime.control_flow import MarimoStopError
from marimo._runtime.runner import cell_runner
from marimo._runtime.runner.cell_runner import Runner
from marimo._runtime.runtime import Kernel
from marimo._runtime.scratch import SCRATCH_CELL_ID
from marimo._utils.signals import SigintHandler

from kernel import copies
from kernel.graph_scans import find_ancestors
from kernel.kernel_state import STATE

HOST = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
HIDDEN = (HOST, SigintHandler.__call__.__code__.co_filename)
MAX_STATE_ROUNDS = 100
UNFINISHED = (None, "exception", "cancelled", "interrupted")


def install():
    """Patches marimo in this process; once, in the zygote."""
    Kernel._run_cells = _run_cells(Kernel._run_cells)
    Kernel._run_cells_internal = _rerun_for_state(Kernel._run_cells_internal)
    Kernel._propagate_kernel_errors = _note_stops(Kernel._propagate_kernel_errors)
    Runner.run = _send_before_notebook_code(Runner.run)
    Runner.run_all = _settle_run(Runner.run_all)
    cell_runner.unwrap_user_exception = _hide_host(cell_runner.unwrap_user_exception)


def _run_cells(run):
    async def run_cells(self, cell_ids):
        """
        Makes ancestors that did not succeed run again; marimo would repeat their old failure for ever. A notebook
        that a cell embeds (`app.embed()`) is left as it is. It keeps no results of its cells, so each would look
        unfinished: the cell of a UI element would run again, and the element would lose the value that was set.
        """
        if get_context().is_embedded():
            return await run(self, cell_ids)
        cells = self.graph.cells
        ancestors = find_ancestors(self.graph, cell_ids)
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


def _rerun_for_state(run):
    async def run_cells_internal(self, roots):
        """
        Runs a cell again, together with its dependents, when a later cell has set its `mo.state`. A lazy marimo only
        marks the cell stale. The number of rounds is limited, because a cell may set its own state for ever.
        """
        changed = await run(self, roots)
        for _ in range(MAX_STATE_ROUNDS):
            again = _with_dependents(self.graph, changed)
            if not again or not roots:  # without roots, no cell has set a state
                return changed
            changed = (changed - again) | await run(self, again)
        for cell_id in _with_dependents(self.graph, changed):
            text = f"This cell did not run again: its state was set {MAX_STATE_ROUNDS} times in one run.\n"
            line = CellOutput(channel=CellChannel.STDERR, mimetype="text/plain", data=text)
            broadcast_notification(CellNotification(cell_id=cell_id, console=line), self.stream)
        return changed

    return run_cells_internal


def _with_dependents(graph, cell_ids):
    """Returns those of the cells and their dependents that have run in this kernel and may run again."""
    dependents = set().union(*(graph.descendants(cell_id) for cell_id in cell_ids))
    return {
        i
        for i in cell_ids | dependents
        if i in graph.cells and graph.cells[i].run_result_status is not None and not graph.is_disabled(i)
    }


def _note_stops(propagate):
    def propagate_kernel_errors(self, ctx):
        STATE.stopped.difference_update(ctx.exceptions)
        STATE.stopped.update(i for i, error in ctx.exceptions.items() if isinstance(error, MarimoStopError))
        propagate(self, ctx)

    return propagate_kernel_errors


def _settle_run(run_all):
    async def run_all_and_settle(self):
        self.finished, STATE.shown_unrun = set(), set()
        try:
            await run_all(self)
        finally:
            STATE.interrupted |= self.interrupted
            settled = self.finished | STATE.shown_unrun | {SCRATCH_CELL_ID}
            _settle_unrun(self.graph, self._run_position.keys() - settled)

    return run_all_and_settle


def _settle_unrun(graph, planned):
    """
    Cells that did not run because of an interrupt or a failure: marimo has deleted their variables, but reports them
    as fresh.
    """
    unrun = {cell_id for cell_id in planned if cell_id in graph.cells and not graph.is_disabled(cell_id)}
    for cell in map(graph.cells.__getitem__, unrun):
        cell.set_run_result_status("cancelled")
        if cell.runtime_state in ("queued", "running"):  # the interrupt came between two steps of marimo's own
            cell.set_runtime_state("idle")
    if unrun:
        graph.set_stale(unrun, prune_imports=True)


def _send_before_notebook_code(run):
    async def run_and_send(self, cell_id):
        STATE.outbox.release()
        result = None
        if cell_id == SCRATCH_CELL_ID and STATE.running and STATE.running[-1].keep:
            self.glbls = STATE.scratch_names.globals_with(self.glbls)  # marimo's globals are a copy of the notebook's
        try:
            result = await run(self, cell_id)
        finally:
            copies.end_with(result)
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
    """Removes the frames of this host, and of handlers of interrupts, from the tracebacks of an exception and of its
    causes."""
    if exception is None or id(exception) in seen:
        return
    seen.add(id(exception))
    exception.__traceback__ = _without_host(exception.__traceback__)
    for origin in (exception.__cause__, exception.__context__, *getattr(exception, "exceptions", ())):
        hide_frames(origin, seen)


def _without_host(traceback):
    while traceback and traceback.tb_frame.f_code.co_filename.startswith(HIDDEN):
        traceback = traceback.tb_next
    shown = traceback
    while shown and shown.tb_next:
        if shown.tb_next.tb_frame.f_code.co_filename.startswith(HIDDEN):
            shown.tb_next = shown.tb_next.tb_next
        else:
            shown = shown.tb_next
    return traceback
