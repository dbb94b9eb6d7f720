"""Notebooks that are written to a file and read again, and the table of docs/notebook-files.md that lists the parts that stay."""

import json
import os
import unittest

from support import ROOT, Host

IMPORT = ("import marimo as mo", {})
HEADER = '# Copyright us\n# /// script\n# dependencies = ["polars"]\n# ///\n\n"""About it"""'
LATEX = r"""# Title
$a \times b$ \theta \[ \frac{a}{b} \] {brace}
first line  """ + "\nsecond line\n\n```python\nx = \"\"\"a\"\"\"\n```\n\n<p>one</p>\n\n\n\n    four blanks"

# Each row of the table: its cells as (code, options), and which of their parts must stay: code,
# options, the shown text or the app.
ROWS = {
    "Python code": ("code", [("x = 1\ny = '''\n  a\n'''", {}), ("# only a comment", {}), ("x += 1\nx", {}), ("def f():\n    return 1", {})]),
    "names of cells": ("options", [("x = 1", {"name": "first"}), ("def f():\n    return 1", {"name": "f"})]),
    "hidden code of Python cells": ("options", [("x = 1", {"hide_code": True}), ("y = 1", {})]),
    "disabled cells": ("options", [("x = 1", {"disabled": True, "expand_output": True})]),
    "columns": ("options", [("x = 1", {}), ("y = 1", {"column": 1}), ("z = 1", {"column": 2})]),
    "the setup cell": ("ids", [("import os", {}), ("x = 1", {})]),
    "cells that do not parse, with their names": (
        "code options",
        [("x = = 1", {"name": "broken", "hide_code": True}), ("%time x = r'\\d'", {"name": "magic"}), ('x = = """1"""', {})],
    ),
    "names that are defined twice": ("code", [("x = 1", {}), ("x = 2\nimport os", {}), ("import os", {})]),
    "empty cells": ("code", [("", {}), ("x = 1", {}), ("", {})]),
    "empty lines at the end of a cell": ("code", [("x = 1\n\n", {})]),
    "the text of Markdown cells, with LaTeX": (
        "text",
        [
            IMPORT,
            (f"mo.md({LATEX!r})", {}),
            (f"mo.md(\n    r'''{LATEX}\n    '''\n)", {}),
            ('mo.md(\n    r"""\n    $a \\times b$\n    """\n)', {}),
            (r'mo.md("$a \\times b$\t|")', {}),
            (r'mo.md(f"{{x}} \\theta")', {}),
            (r'mo.md("a" "\\nu" "\\")', {}),
            ("mo.md('\"\"\" and \\'\\'\\' \\\\times')", {}),
            ('mo.md(r"""\na\n\n<!---->\n\nb\n""")', {}),
            ('mo.md(r"""\n```python {.marimo}\nx = 1\n```\n""")', {}),
        ],
    ),
    "the code of Markdown cells": ("code", [IMPORT, ('mo.md("one line")', {}), ('mo.md(f"{{x}}")', {})]),
    "names of Markdown cells": ("options", [IMPORT, ('mo.md(r"""\nx\n""")', {"hide_code": True, "name": "prose"})]),
    "shown code of Markdown cells": ("options", [IMPORT, ('mo.md(r"""\nx\n""")', {})]),
    "comments next to Markdown": (
        "code",
        [IMPORT, ('# a\nmo.md("x")', {}), ('mo.md("x")  # b', {}), ('mo.md("x", size="lg")', {}), ('mo.md("x").callout()', {})],
    ),
    "the code of SQL cells": ("code", [IMPORT, ('_df = mo.sql(f"""select 1""")', {})]),
    "title, width and other options of the notebook": ("app", [("x = 1", {})]),
    "the text above the notebook, such as its dependencies": ("header", [("x = 1", {})]),
    "tabs and special characters in strings": ("code", [('x = "a\tb\x0c\u2028c\x85d"\nif x:\n\ty = "\x1c €"', {})]),
}
APP = {"width": "medium", "app_title": 'A "title"', "sql_output": "polars"}


def setUpModule():
    global host
    host = Host()
    unittest.addModuleCleanup(host.stop)


def make_notebook(row):
    cells = [{"cell_id": f"c{at}", "code": code, "options": options} for at, (code, options) in enumerate(ROWS[row][1])]
    if row == "the setup cell":
        cells[0]["cell_id"] = "setup"
    options = {**APP, "header": HEADER} if "the text above" in row else APP
    return {"version": "1", "app": {"options": options}, "valid": True, "ui_values": {}, "cells": cells}


def find_shown(code):
    """Returns the text that a Markdown cell gives to mo.md, as mo.md cleans it, and `None` for other cells."""
    from inspect import cleandoc

    shown = []

    class mo:
        md = staticmethod(lambda text, **_: shown.append(cleandoc(text).rstrip()))

    if code.startswith("mo."):
        exec(code, {"mo": mo})
    return shown


def project(aspects, notebook):
    """Returns the parts of a notebook that a row of the table is about."""
    options = notebook["app"]["options"]
    views = {
        "code": lambda: [cell["code"] for cell in notebook["cells"]],
        "options": lambda: [cell["options"] for cell in notebook["cells"]],
        "ids": lambda: [cell["cell_id"] == "setup" for cell in notebook["cells"]],
        "text": lambda: [find_shown(cell["code"]) for cell in notebook["cells"]],
        "app": lambda: options,
        "header": lambda: options.get("header"),
    }
    return [views[aspect]() for aspect in aspects.split()]


def read_table():
    with open(os.path.join(ROOT, "docs/notebook-files.md"), encoding="utf-8") as file:
        section = file.read().split("## Round trips")[1].split("\n## ")[0]
    rows = [[field.strip() for field in line.strip("|\n").split("|")] for line in section.splitlines() if line.startswith("|")]
    formats = [field.strip("`.") for field in rows[0][1:]]
    return {row[0]: dict(zip(formats, row[1:], strict=True)) for row in rows[2:]}


def convert(direction, format, request):
    done, _ = host.convert(direction, format, request)
    if not done["ok"]:
        raise AssertionError(done)
    return done["content" if direction == "write" else "serialization"]


def write(format, notebook):
    return convert("write", format, {"serialization": notebook})


def read(format, content):
    return convert("read", format, {"content": content})


class RoundTrips(unittest.TestCase):
    def test_the_table_of_round_trips_is_true(self):
        table = read_table()
        self.assertEqual(list(table), list(ROWS))
        for row, stays in table.items():
            notebook = make_notebook(row)
            for format, says in stays.items():
                with self.subTest(row=row, format=format):
                    back = read(format, write(format, notebook))
                    expected, found = project(ROWS[row][0], notebook), project(ROWS[row][0], back)
                    if says == "kept":
                        self.assertEqual(found, expected)
                    else:
                        self.assertEqual(says, "changed")
                        self.assertNotEqual(found, expected)

    def test_latex_stays_latex_when_a_jupyter_notebook_of_marimo_is_read(self):
        for prefix, source in (("", "$a \\times b$"), ("f", "{x} \\theta"), ("r", 'a """b""" \\nu'), ("", "x")):
            with self.subTest(prefix=prefix, source=source):
                cell = {"cell_type": "markdown", "source": source, "metadata": {"marimo": {"md_prefix": prefix}}}
                back = read("ipynb", json.dumps({"cells": [cell]}))
                self.assertEqual(find_shown(back["cells"][-1]["code"]), [source])

    def test_a_reader_that_knows_only_the_prefix_gets_latex_from_our_jupyter_notebooks(self):
        codes = ['mo.md(\n    r"""\n    $a \\times b$\n    """\n)', 'mo.md("$a \\\\times b$")', 'mo.md("plain")']
        cells = [{"cell_id": f"c{at}", "code": code, "options": {}} for at, code in enumerate(codes)]
        written = json.loads(write("ipynb", {**make_notebook("empty cells"), "cells": cells}))
        self.assertEqual([cell["metadata"]["marimo"]["md_prefix"] for cell in written["cells"]], ["r", "r", ""])

    def test_cells_that_jupyter_changed_are_converted_and_the_others_stay(self):
        codes = ["import marimo as mo", 'mo.md("one line")', "%time x = 1", "y = 1\n\n", 'mo.md("other")', "z = 1"]
        cells = [{"cell_id": f"c{at}", "code": code, "options": {"name": f"n{at}"}} for at, code in enumerate(codes)]
        file = json.loads(write("ipynb", {**make_notebook("empty cells"), "cells": cells}))
        file["cells"][4]["source"] = ["$\\nu$"]
        file["cells"][5]["source"] = ["z = 2\n", "%matplotlib inline"]
        file["cells"].append({"cell_type": "code", "source": "y = y + 1", "metadata": {}})
        back = read("ipynb", json.dumps(file))["cells"]

        self.assertEqual([cell["code"] for cell in back[:4]], codes[:4])
        self.assertEqual(back[4]["code"], 'mo.md(r"""\n$\\nu$\n""")')
        self.assertTrue(back[5]["code"].startswith("z = 2\n"), back[5]["code"])
        self.assertEqual(back[6]["code"], "y_1 = y + 1")
        self.assertEqual([cell["options"].get("name") for cell in back], [*(f"n{at}" for at in range(6)), None])

    def test_a_file_cannot_hide_other_code_behind_a_text(self):
        cells = [{"cell_id": "c", "code": 'mo.md("shown")', "options": {}}]
        for code in ("print('hidden')", 'mo.md("other")', 'mo.md("shown", size=print())', 'mo.md("shown")\nprint()', 5, None):
            file = json.loads(write("ipynb", {**make_notebook("empty cells"), "cells": cells}))
            file["cells"][0]["metadata"]["troupe"]["code"] = code
            back = read("ipynb", json.dumps(file))["cells"]
            self.assertEqual(find_shown(back[-1]["code"]), ["shown"], code)
        code_cell = {"cell_type": "code", "source": "x = 1", "metadata": {}}
        for mark in (5, [], {}, {"sha256": 5}, {"sha256": "0" * 64, "code": "y = 1"}):
            back = read("ipynb", json.dumps({"cells": [{**code_cell, "metadata": {"troupe": mark}}]}))
            self.assertEqual([cell["code"] for cell in back["cells"]], ["x = 1"])
        marked = json.loads(write("ipynb", make_notebook("disabled cells")))
        marked["cells"][0]["metadata"]["troupe"]["code"] = "hidden = 1"
        self.assertEqual(read("ipynb", json.dumps(marked))["cells"][0]["code"], "x = 1")


if __name__ == "__main__":
    unittest.main()
