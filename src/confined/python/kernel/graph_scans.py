"""Scans of the notebook's graph that marimo repeats for every cell of a run, answered faster and the same.

imported_namespaces: asked n² times a run; it follows from `variable_data`, which nothing changes once a cell is
compiled. is_disabled: walks all ancestors of a cell; when no cell at all is disabled, none is.
"""

import functools

from marimo._ast.cell import CellImpl
from marimo._runtime.dataflow.graph import DirectedGraph


def install():
    """Patches marimo in this process; once, in the zygote."""
    cached = functools.cached_property(_frozen(CellImpl.imported_namespaces.fget))
    cached.__set_name__(CellImpl, "imported_namespaces")
    CellImpl.imported_namespaces = cached
    DirectedGraph.is_disabled = _unless_none_is(DirectedGraph.is_disabled)


def _frozen(find_namespaces):
    return lambda cell: frozenset(find_namespaces(cell))


def _unless_none_is(is_disabled):
    def is_disabled_if_any(self, cell_id):
        cells = self.topology.cells
        if cell_id in cells:
            for cell in cells.values():
                if cell.config.disabled:
                    break
            else:
                return False
        return is_disabled(self, cell_id)

    return is_disabled_if_any
