"""
Makes cells that contain only Markdown, such as `mo.md("# Title")`, visible without Python. marimo's editor shows such
cells as soon as a notebook is opened, and leaves them out of the run. Here they run like all others, so a cell
behaves the same once values are interpolated in it. They are shown even when a cell that they need has failed, for
example because `import marimo as mo` stands below an import of a missing package.
"""

from marimo._messaging.cell_output import CellChannel
from marimo._messaging.notification_utils import CellNotificationUtils
from marimo._output.md import md
from marimo._runtime.execution import ExecutionAttempt
from marimo._runtime.runner import hooks_on_finish

from kernel.kernel_state import STATE


def install():
    """Patches marimo in this process; once, in the zygote."""
    hooks_on_finish.ON_FINISH_HOOKS.insert(0, show_cancelled_markdown)


def show_cancelled_markdown(ctx):
    """Runs before marimo reports which cells were cancelled: removes the cells from that list that
    contain only Markdown.
    """
    for raising_cell in ctx.cancelled_cells:
        cancelled = ctx.cancelled_cells[raising_cell]
        for cell_id in [i for i in cancelled if ctx.graph.cells[i].markdown is not None]:
            cancelled.discard(cell_id)
            _show(cell_id, ctx.graph.cells[cell_id], ctx.execution_ids.get(cell_id))
            STATE.shown_unrun.add(cell_id)


def _show(cell_id, cell, execution_id):
    if execution_id is not None:  # otherwise the server would not count this output among the results of the run
        ExecutionAttempt(cell_id, execution_id).start()
    mimetype, data = md(cell.markdown)._mime_()
    cell.set_runtime_state("idle")
    cell.set_run_result_status("success")
    CellNotificationUtils.broadcast_output(CellChannel.OUTPUT, mimetype, data, cell_id, "idle")
