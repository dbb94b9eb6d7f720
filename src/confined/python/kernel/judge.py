"""Finds the structural errors that a notebook would have with other code, before anything changes or runs."""

import msgspec
from marimo._lint.validate_graph import check_for_errors
from marimo._runtime.dataflow import DirectedGraph

from kernel.compiling import compile_cell


def judge(graph, codes, cell_ids) -> dict[str, list]:
    """Returns errors by cell, for `cell_ids` and all that they would depend on with `codes` in place. Does not change
    `graph`. Compiles every cell again, because registering a cell marks it stale, and the kernel's own cells must
    stay unchanged."""
    imagined = DirectedGraph()
    for cell_id, code in {**{cell_id: cell.code for cell_id, cell in graph.cells.items()}, **codes}.items():
        try:
            cell = compile_cell(code, cell_id=cell_id)
        except SyntaxError:
            continue  # not a structural error: the run of this cell fails and reports it
        imagined.register_cell(cell_id, cell)
    judged = {cell_id for cell_id in cell_ids if cell_id in imagined.cells}
    judged |= set().union(*(imagined.ancestors(cell_id) for cell_id in judged))
    errors = check_for_errors(imagined)
    return {cell_id: msgspec.to_builtins(list(errors[cell_id])) for cell_id in judged & errors.keys()}
