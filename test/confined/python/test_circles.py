"""The modules of the Python side import each other in one direction, also within functions."""

import ast
import graphlib
import pathlib
import unittest

from support import ROOT

SIDES = ("src/confined/notebook_modules", "src/confined/python")


def imports_of(side):
    """Returns the modules of a side, each with those of the side that it imports."""
    root = pathlib.Path(ROOT, side)
    files = {".".join(path.relative_to(root).with_suffix("").parts): path for path in root.rglob("*.py")}
    imports = {}
    for name, path in files.items():
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        whole = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        parts = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        named = [name for node in parts for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))]
        imports[name] = {module for module in (*whole, *named) if module in files}
    return imports


class CirclesTest(unittest.TestCase):
    def test_no_module_imports_one_that_imports_it(self):
        for side in SIDES:
            with self.subTest(side):
                imports = imports_of(side)
                self.assertGreater(len(imports), 5)
                graphlib.TopologicalSorter(imports).prepare()  # raises for a circle


if __name__ == "__main__":
    unittest.main()
