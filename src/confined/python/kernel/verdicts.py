"""Finds the cells whose state may have changed since the server was told, so that the end of a command costs nothing for the
other cells of a large notebook.

marimo changes the state of a cell by three functions, and adds and removes cells by two. Each of them notes the cell here. The
errors of cells are compared with those before.
"""

import msgspec
from marimo._ast.cell import CellImpl
from marimo._runtime.dataflow.topology import MutableGraphTopology

from kernel.kernel_state import STATE


class Verdicts:
    """The cells of which the server does not know the present state."""

    def __init__(self):
        self.noted = {}  # its keys are ids of cells; some cells may be of other graphs, such as that of an embedded app
        self._taken = {}
        self._errors = {}

    def take(self, kernel):
        """Returns for each cell that may have changed since the last call [status of its last run (None: never ran),
        stale, structural errors that forbid running it]."""
        cells, errors = kernel.graph.cells, self._note_errors(kernel)
        self._taken, self.noted = self.noted, {}
        found = {}
        for cell_id in list(self._taken):
            cell = cells.get(cell_id)
            if cell is not None:
                found[cell_id] = [_status(cell_id, cell), cell.stale, []]
            if cell_id in errors:
                found.setdefault(cell_id, [None, False, []])[2] = msgspec.to_builtins(list(errors[cell_id]))
        return found

    def give_back(self):
        """Makes the next call of `take` return the same cells again, because the server does not know them."""
        self.noted = {**self._taken, **self.noted}

    def mark_unrun_stale(self, kernel):
        """
        Marks as stale the cells that have not run. marimo leaves a cell fresh if code mode created it without a run, or
        if it was interrupted before its first line. A cell can only be wrong if it, its errors or a cell that depends on
        it has changed.
        """
        self._note_errors(kernel)
        cells, children, parents = kernel.graph.cells, kernel.graph.children, kernel.graph.parents
        changed = [cell_id for cell_id in list(self.noted) if cell_id in cells]
        wrong = {
            i
            for i in {*changed, *(parent for cell_id in changed for parent in parents[cell_id])}
            if cells[i].run_result_status is None
            and i not in kernel.errors
            and cells[i].code.strip()
            and not (cells[i].stale and all(cells[child].stale for child in children[i]))
        }
        if wrong:
            # this marks all dependents, too: otherwise cells in the middle of a chain would be missed
            kernel.graph.set_stale(wrong, prune_imports=True)

    def _note_errors(self, kernel):
        errors = {**kernel.errors, **STATE.unparsable}
        for cell_id in errors.keys() | self._errors.keys():
            if errors.get(cell_id) != self._errors.get(cell_id):
                self.noted[cell_id] = None
        self._errors = errors
        return errors


STATE.verdicts = Verdicts()


def install():
    """Patches marimo in this process; once, in the zygote."""
    CellImpl.set_stale = _noting_cell(CellImpl.set_stale)
    CellImpl.set_run_result_status = _noting_cell(CellImpl.set_run_result_status)
    MutableGraphTopology.add_node = _noting_node(MutableGraphTopology.add_node)
    MutableGraphTopology.remove_node = _noting_node(MutableGraphTopology.remove_node)


def _status(cell_id, cell):
    stopped = cell.run_result_status == "exception" and cell_id in STATE.stopped
    return "stopped" if stopped else cell.run_result_status


def _noting_cell(change):
    def change_and_note(self, *args, **kwargs):
        STATE.verdicts.noted[self.cell_id] = None
        return change(self, *args, **kwargs)

    return change_and_note


def _noting_node(change):
    def change_and_note(self, cell_id, *args):
        if not self.__dict__.get("_is_imagined"):
            STATE.verdicts.noted[cell_id] = None
        return change(self, cell_id, *args)

    return change_and_note
