"""Writes the examples in the docstrings of installed libraries as notebooks of marimo, by the converter of the server.

    docstring_notebooks.py HOST TARGET SEED COUNT LIBRARY…

Of each library it takes COUNT docstrings with examples at random, complete ones first: the same for the same SEED and version.
Examples that need the network or a window are left out. The names of the files are the names of the documented objects.
"""

import ast
import doctest
import importlib.util
import json
import os
import random
import re
import sys
import textwrap

HOST, TARGET, SEED, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sys.path.insert(0, HOST)

from conversion.notebook_files import read_notebook  # noqa: E402
from conversion.notebook_ir import write_py  # noqa: E402

UNSUITABLE = re.compile(
    r"https?:|get_rdataset|webuse|urlopen|requests\.|sampledata\.download|\bshow\(|\bserve\b|curdoc|time\.sleep|input\("
)
DRAWS = re.compile(r"random|rvs|\brand|sample|simulat")  # without a seed, two runs differ
BLOCK = re.compile(r"^( *)\.\. (?:code-block:: python|bokeh-plot::|ipython:: python)[ \t]*\n((?:\1 +\S.*\n|[ \t]*\n)+)", re.M)


def find_modules(folder, name):
    for entry in sorted(os.listdir(folder)):
        path = os.path.join(folder, entry)
        if entry.endswith(".py") and not entry.startswith("_"):
            yield path, f"{name}.{entry[:-3]}"
        elif os.path.exists(os.path.join(path, "__init__.py")) and entry not in ("tests", "_sphinxext", "sampledata"):
            yield from find_modules(path, f"{name}.{entry}")


def find_docstrings(path, module):
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    pending = [(tree, module)]
    while pending:
        node, name = pending.pop()
        if text := ast.get_docstring(node):
            yield name, text
        pending += [(child, f"{name}.{child.name}") for child in node.body if isinstance(child, kinds) and child.name[0] != "_"]


def find_cells(text):
    """Returns the examples in a docstring: consecutive prompts are one cell."""
    cells, is_open = [], False
    for part in doctest.DocTestParser().parse(text):
        if isinstance(part, doctest.Example):
            cells[-1:] = [cells[-1] + part.source] if is_open else [*cells[-1:], part.source]
            is_open = not part.want
        elif part.strip():
            is_open = False
    blocks = [textwrap.dedent(block) for _, block in BLOCK.findall(text + "\n")]
    return cells or [block for block in blocks if not block.lstrip().startswith(":")]


def parses(code):
    try:
        return bool(ast.parse(code).body)
    except SyntaxError:
        return False


def is_suitable(code):
    return not UNSUITABLE.search(code) and ("seed" in code or not DRAWS.search(code))


def main():
    for library in sys.argv[5:]:
        folder = os.path.dirname(importlib.util.find_spec(library).origin)
        found = {}
        for path, module in find_modules(folder, library):
            for name, text in find_docstrings(path, module):
                try:
                    cells = find_cells(text)
                except ValueError:  # prompts that doctest cannot read
                    continue
                if cells and all(map(parses, cells)) and is_suitable("\n".join(cells)):
                    found[name] = cells
        dice = random.Random(SEED)
        names = sorted(found)
        dice.shuffle(names)
        names.sort(key=lambda name: "import " not in found[name][0])  # complete examples first
        for name in names[:COUNT]:
            cells = [
                {"cell_type": "code", "source": code.rstrip("\n"), "metadata": {}, "outputs": [], "execution_count": None}
                for code in found[name]
            ]
            notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
            with open(os.path.join(TARGET, f"{name}.py"), "w", encoding="utf-8") as out:
                out.write(write_py(read_notebook(notebook, "ipynb")))


main()
