"""The list of marimo's private names that the host relies on is complete, and they are all there."""

import ast
import os
import unittest

from support import HOST

import compatibility  # isort: skip


def find_imports():
    """{module: {names}} of everything that the host's files import from marimo's private modules."""
    found = {}
    for folder, _, files in os.walk(HOST):
        for file in (file for file in files if file.endswith(".py") and file != "compatibility.py"):
            with open(os.path.join(folder, file), encoding="utf-8") as source:
                for node in ast.walk(ast.parse(source.read())):
                    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "marimo":
                        found.setdefault(node.module, set()).update(alias.name for alias in node.names)
    return found


class Compatibility(unittest.TestCase):
    def test_the_installed_marimo_fits(self):
        self.assertEqual((compatibility.is_supported(), compatibility.find_missing()), (True, []))

    def test_every_private_name_that_the_host_imports_is_checked(self):
        listed = {
            module: {name.split(".")[0] for name in names.split()} for module, names in compatibility.PRIVATE.items()
        }
        unlisted = {module: names - listed.get(module, set()) for module, names in find_imports().items()}
        self.assertEqual({module: names for module, names in unlisted.items() if names}, {})

    def test_every_name_that_is_checked_is_imported_somewhere(self):
        found = find_imports()
        unused = {
            module: {name.split(".")[0] for name in names.split()} - found.get(module, set())
            for module, names in compatibility.PRIVATE.items()
        }
        self.assertEqual({module: names for module, names in unused.items() if names}, {})

    def test_a_missing_name_is_reported(self):
        self.addCleanup(compatibility.PRIVATE.__delitem__, "marimo._runtime.runner.nowhere")
        compatibility.PRIVATE["marimo._runtime.runner.nowhere"] = "Anything"
        self.assertIn("marimo._runtime.runner.nowhere", compatibility.find_missing()[0])


if __name__ == "__main__":
    unittest.main()
