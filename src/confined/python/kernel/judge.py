"""Finds the structural errors that a notebook would have with other code, before anything changes or runs."""

import msgspec
from marimo._lint.validate_graph import check_for_errors
from marimo._runtime.dataflow import DirectedGraph
from marimo._runtime.dataflow.topology import MutableGraphTopology

from kernel.compiling import as_never_run, compile_for_question, forget_compiled


class Imagined:
    """A graph that has the code of the last question. The next question changes only the cells that have other code in it, because
    making the graph of a large notebook takes long."""

    def __init__(self):
        self.graph = DirectedGraph()
        self.graph.topology._is_imagined = True  # verdicts.py does not note its cells
        self._followed = None
        self._changed = {}  # its keys are the cells that have come or gone in the followed graph since the last question
        self._overridden = {}  # code by cell, of the last question

    def follow(self, graph, codes):
        """Gives the graph the cells of `graph`, with the code in `codes` instead of their own. Does not change `graph`."""
        try:
            self._follow(graph, codes)
        except BaseException:  # an interrupt may come between two steps
            self.__init__()
            raise

    def _follow(self, graph, codes):
        if self._followed is not graph:
            self.__init__()
            self._followed, self._changed = graph, dict.fromkeys(graph.cells)
            graph.topology._changed = self._changed
        forget_compiled()
        wanted = {}
        for cell_id in [*self._changed, *self._overridden, *codes]:
            present, imagined = graph.cells.get(cell_id), self.graph.cells.get(cell_id)
            code = codes.get(cell_id, present and present.code)
            if imagined is None or imagined.code != code:
                wanted[cell_id] = code
        for cell_id in wanted.keys() & self.graph.cells.keys():
            self.graph.delete_cell(cell_id)
        for cell_id, code in wanted.items():
            if code is not None and (cell := _imagine(cell_id, code, graph)):
                self.graph.register_cell(cell_id, cell)
        self._changed.clear()
        self._overridden = codes


def install():
    """Patches marimo in this process; once, in the zygote."""
    MutableGraphTopology.add_node = _noting_change(MutableGraphTopology.add_node)
    MutableGraphTopology.remove_node = _noting_change(MutableGraphTopology.remove_node)


def _noting_change(change):
    def change_and_note(self, cell_id, *cell):
        changed = self.__dict__.get("_changed")
        if changed is not None:
            changed[cell_id] = None
        change(self, cell_id, *cell)

    return change_and_note


def _imagine(cell_id, code, graph):
    """Returns a compiled cell in the state of one that was never run; None when its code does not parse, which is not a structural
    error: the run of the cell fails and reports it."""
    present = graph.cells.get(cell_id)
    if present is None or present.code != code:
        try:
            return compile_for_question(code, cell_id)
        except SyntaxError:
            return None
    return as_never_run(present)  # registering a cell may change its state, and the kernel's own cells must stay unchanged


_imagined = Imagined()


def judge(graph, codes, cell_ids) -> dict[str, list]:
    """Returns errors by cell: of `cell_ids`, and of all cells on which they would depend if they had the code in `codes`.
    Does not change `graph`."""
    _imagined.follow(graph, codes)
    imagined = _imagined.graph
    judged = {cell_id for cell_id in cell_ids if cell_id in imagined.cells}
    judged |= set().union(*(imagined.ancestors(cell_id) for cell_id in judged))
    errors = check_for_errors(imagined)
    return {cell_id: msgspec.to_builtins(list(errors[cell_id])) for cell_id in judged & errors.keys()}
