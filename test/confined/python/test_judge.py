"""The structural errors of code that a notebook does not have yet."""

import itertools
import unittest
from unittest import mock

import support  # noqa: F401  isort: skip  puts the host on sys.path

from marimo._ast.cell import CellConfig
from marimo._ast.compiler import compile_cell
from marimo._runtime.dataflow.graph import DirectedGraph

from kernel import compiling, judge

CELLS = {"a": "x = 1", "b": "y = x", "c": "z = y"}
EDITS = ({"a": "x = z"}, {"b": "x = 2"}, {"c": "x = ("}, {"d": "y = 3"}, {})


def graph_of(codes):
    graph = DirectedGraph()
    for id, code in codes.items():
        graph.register_cell(id, compile_cell(code, cell_id=id).configure(CellConfig(disabled=id == "b")))
    return graph


def judged(graph, codes):
    """Returns the errors, with the edges of a cycle in one order: a cycle has no first edge."""
    found = judge.judge(graph, codes, [*CELLS, "d"])
    for error in itertools.chain.from_iterable(found.values()):
        if "edges_with_vars" in error:
            error["edges_with_vars"] = sorted(error["edges_with_vars"])
    return found


def judged_anew(graph, codes):
    judge._imagined = judge.Imagined()
    return judged(graph, codes)


def setUpModule():
    judge.install()


class Judging(unittest.TestCase):
    def test_an_answer_does_not_depend_on_earlier_questions(self):
        for edits in itertools.permutations(EDITS, 3):
            graph = graph_of(CELLS)
            expected = [judged_anew(graph, codes) for codes in edits]
            judge._imagined = judge.Imagined()
            self.assertEqual([judged(graph, codes) for codes in edits], expected, edits)

    def test_an_answer_follows_the_cells_of_the_notebook(self):
        judge._imagined = judge.Imagined()
        self.assertEqual(judge.judge(graph_of(CELLS), {"a": "x = z"}, ["a"]).keys(), CELLS.keys())
        fewer = {"a": "x = 1", "b": "y = x"}
        self.assertEqual(judge.judge(graph_of(fewer), {"a": "x = z"}, ["a"]), {})

    def test_an_answer_follows_every_change_of_the_notebook(self):
        changes = ({"a": "x = z"}, {"a": None}, {"d": "x = 5"}, {"b": "y = 1"}, {"c": "y = 2"}, {"d": None}, {"b": "y = x"})
        for order in itertools.permutations(changes, 3):
            graph = graph_of(CELLS)
            judge._imagined = judge.Imagined()
            for change in order:
                for id, code in change.items():
                    if id in graph.cells:
                        graph.delete_cell(id)
                    if code is not None:
                        graph.register_cell(id, compile_cell(code, cell_id=id))
                followed, found = judge._imagined, [judged(graph, codes) for codes in EDITS]
                self.assertEqual(found, [judged_anew(graph, codes) for codes in EDITS], order)
                graph.topology._changed = followed._changed  # the graph of another question had followed the notebook meanwhile
                judge._imagined = followed

    def test_a_run_of_the_same_code_gets_a_cell_of_its_own(self):
        graph, codes = graph_of(CELLS), {"a": "import os", "b": "y = ("}
        judge.judge(graph, codes, ["a"])
        first, again = (compiling.compile_cell("import os", cell_id="a") for _ in range(2))
        self.assertIs(first.mod, again.mod)
        first.set_run_result_status("success")
        first.configure({"disabled": True})
        first.import_workspace.imported_defs.add("os")
        state = (again.run_result_status, again.config.disabled, again.import_workspace.imported_defs)
        self.assertEqual(state, (None, False, set()))
        self.assertTrue(again.import_workspace.is_import_block)
        with self.assertRaises(SyntaxError):
            compiling.compile_cell("y = (", cell_id="b")
        others = (("import re", {}), ("import os", {"carried_imports": list(again.imports)}), ("import os", {"cell_id": "z"}))
        for code, more in others:
            self.assertIsNot(compiling.compile_cell(code, **{"cell_id": "a", **more}).mod, first.mod)
        judge.judge(graph, {}, ["a"])
        self.assertIsNot(compiling.compile_cell("import os", cell_id="a").mod, first.mod)

    def test_cells_of_the_notebook_keep_their_state(self):
        graph = graph_of(CELLS)
        for cell in graph.cells.values():
            cell.set_run_result_status("success")
        before = {id: (cell.stale, cell.run_result_status, cell.runtime_state) for id, cell in graph.cells.items()}
        judge._imagined = judge.Imagined()
        judge.judge(graph, {"a": "x = z"}, ["a"])
        self.assertEqual({id: (cell.stale, cell.run_result_status, cell.runtime_state) for id, cell in graph.cells.items()}, before)

    def test_a_question_after_an_interrupted_one_is_answered(self):
        graph = graph_of(CELLS)
        judge._imagined = judge.Imagined()
        register = DirectedGraph.register_cell

        def interrupted(graph, cell_id, cell):
            register(graph, cell_id, cell)
            if cell_id == "b":
                raise KeyboardInterrupt

        with mock.patch.object(DirectedGraph, "register_cell", interrupted), self.assertRaises(KeyboardInterrupt):
            judge.judge(graph, {"a": "x = z"}, ["a"])
        self.assertEqual(judge.judge(graph, {"a": "x = z"}, ["a"]).keys(), CELLS.keys())


if __name__ == "__main__":
    unittest.main()
