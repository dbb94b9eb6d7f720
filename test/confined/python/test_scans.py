"""The faster scans of the graph return the results of marimo's own."""

import itertools
import unittest

import support  # noqa: F401  isort: skip  puts the host on sys.path

from marimo._ast.cell import CellConfig, CellImpl
from marimo._ast.compiler import compile_cell
from marimo._runtime.dataflow import edges
from marimo._runtime.dataflow.definitions import DefinitionRegistry
from marimo._runtime.dataflow.graph import DirectedGraph
from marimo._runtime.dataflow.topology import MutableGraphTopology
from marimo._runtime.packages.module_registry import ModuleRegistry

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
        cls.ancestors, cls.descendants = MutableGraphTopology.ancestors, MutableGraphTopology.descendants
        cls.referring_cells = staticmethod(edges.get_referring_cells)
        cls.multiply_defined = staticmethod(DefinitionRegistry.get_multiply_defined)
        cls.modules = staticmethod(ModuleRegistry.modules)
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

    def test_ancestors_and_descendants_are_found_in_graphs_of_every_shape(self):
        cells = "abcd"
        edges = [(one, other) for one in cells for other in cells]
        for links in itertools.chain.from_iterable(itertools.combinations(edges, n) for n in range(5)):
            topology = MutableGraphTopology()
            for id in cells:
                topology.add_node(id, None)
            for link in links:
                topology.add_edge(*link)
            for id in cells:
                self.assertEqual(topology.ancestors(id), type(self).ancestors(topology, id), (links, id))
                self.assertEqual(topology.descendants(id), type(self).descendants(topology, id), (links, id))
            for some in itertools.combinations(cells, 2):
                of_each = set().union(*map(topology.ancestors, some))
                found = graph_scans.find_ancestors(topology, [*some, "nowhere"])
                self.assertEqual(found - set(some), of_each - set(some), (links, some))

    def test_a_cell_that_is_disabled_later_is_found(self):
        graph = DirectedGraph()
        graph.register_cell("a", compile_cell("x = 1", cell_id="a"))
        self.assertFalse(graph.is_disabled("a"))
        for disabled in (True, False):
            graph.cells["a"].configure({"disabled": disabled})
            self.assertEqual(graph.is_disabled("a"), disabled)

    def test_cells_are_found_by_the_names_in_them_after_every_change(self):
        codes = ("x = y", "y = z + x", "del x", "import x; y", "z = mo.sql(f'SELECT * FROM y')", "1")
        for order in itertools.permutations(range(len(codes)), 3):
            graph = DirectedGraph()
            for step in (*order, *order):
                id = str(step)
                if id in graph.cells:
                    graph.delete_cell(id)
                else:
                    graph.register_cell(id, compile_cell(codes[step], cell_id=id))
                for name in ("x", "y", "z", "mo", "nowhere"):
                    for language in ("python", "sql"):
                        found = graph.get_referring_cells(name, language)
                        self.assertEqual(found, type(self).referring_cells(name, language, graph.topology), (order, name))

    def test_names_of_several_cells_and_imported_modules_are_found_after_every_change(self):
        codes = ("x = 1", "x = y = 2", "import a, b", "import a as x; y = 3", "_df = mo.sql(f'CREATE TABLE s.x (i int)')", "y = 1")
        for order in itertools.permutations(range(len(codes)), 4):
            graph = DirectedGraph()
            registry = ModuleRegistry(graph)
            for step in (*order, *order):
                id = str(step)
                if id in graph.cells:
                    graph.delete_cell(id)
                else:
                    graph.register_cell(id, compile_cell(codes[step], cell_id=id))
                names = graph.get_multiply_defined_conflicts()
                self.assertEqual(names, type(self).multiply_defined(graph.definition_registry), order)
                self.assertEqual(registry.modules(), type(self).modules(registry), order)


if __name__ == "__main__":
    unittest.main()
