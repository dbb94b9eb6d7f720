"""The faster scans of the graph return the results of marimo's own."""

import itertools
import unittest

import support  # noqa: F401  isort: skip  puts the host on sys.path

from marimo._ast.cell import CellConfig, CellImpl
from marimo._ast.compiler import compile_cell
from marimo._runtime.dataflow.graph import DirectedGraph

from kernel import graph_scans

CODES = (
    "",
    "import os",
    "import a.b.c as d",
    "from x.y import z, w",
    "import p\nimport q as r\nq = 1",
    "x = 1",
    "import m; del m",
)


class Scans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.namespaces, cls.is_disabled = CellImpl.imported_namespaces.fget, DirectedGraph.is_disabled
        graph_scans.install()

    def test_imported_namespaces_are_found_for_every_kind_of_import(self):
        for code in CODES:
            cell = compile_cell(code, cell_id="c")
            for _ in range(2):
                self.assertEqual(cell.imported_namespaces, type(self).namespaces(cell), code)

    def test_disabled_cells_are_found_for_every_choice_of_them(self):
        codes = {"a": "x = 1", "b": "y = x", "c": "z = y", "d": "w = 1"}
        for disabled in itertools.chain.from_iterable(itertools.combinations(codes, n) for n in range(5)):
            graph = DirectedGraph()
            for id, code in codes.items():
                graph.register_cell(id, compile_cell(code, cell_id=id).configure(CellConfig(disabled=id in disabled)))
            for id in codes:
                self.assertEqual(graph.is_disabled(id), type(self).is_disabled(graph, id), (disabled, id))
        with self.assertRaises(ValueError):
            graph.is_disabled("nowhere")


if __name__ == "__main__":
    unittest.main()
