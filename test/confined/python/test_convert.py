"""Notebook files, through the child that reads and writes them."""

import asyncio
import json
import pathlib
import re
import shutil
import tempfile
import unittest

import marimo
import msgspec
from marimo._snippets.snippets import read_snippets
from support import Host

from conversion import parameters_cell  # isort: skip  support puts the host on sys.path

SAMPLE = {
    "version": "1",
    "app": {"options": {"width": "medium", "app_title": "T"}},
    "valid": True,
    "ui_values": {},
    "cells": [
        {"cell_id": "setup", "code": "import os", "options": {}},
        {"cell_id": "head", "code": 'mo.md("""\n# Sales\n""")', "options": {"hide_code": True}},
        {"cell_id": "one", "code": "import marimo as mo\nx = 1", "options": {"name": "first"}},
        {
            "cell_id": "two",
            "code": "y = x + 1\nprint(y)\ny",
            "options": {"disabled": True, "column": 0, "expand_output": True},
        },
        {"cell_id": "bad", "code": "x = = 1", "options": {}},
    ],
}
RESULTS = {
    "two": {
        "output": {"channel": "output", "mimetype": "text/html", "data": "<pre>2</pre>"},
        "console": [{"channel": "stdout", "mimetype": "text/plain", "data": "2\n"}],
    }
}

BROKEN = """import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def first():
    a = 1
    return (a,)


@app.cell(hide_code=True)
def newer():
    NEWER
    return


@app.cell
def last(a):
    b = a + 1
    return (b,)


if __name__ == "__main__":
    app.run()
"""


def setUpModule():
    global host
    host = Host()
    unittest.addModuleCleanup(host.stop)


def without_ids(snippet):
    return snippet["title"], [(section["html"], section["code"]) for section in snippet["sections"]]


class Converting(unittest.TestCase):
    def read(self, format, content):
        done, exited = host.convert("read", format, {"content": content})
        self.assertEqual((exited["code"], exited["signal"]), (0, None))
        return done

    def test_a_cell_of_marimos_py_that_does_not_parse_keeps_its_text_and_the_others_are_read(self):
        newer = 'type X = = int\ntext = f"{\'a\' + f\'{"b"}\'}"'
        done = self.read("py", BROKEN.replace("    NEWER", newer.replace("type", "    type").replace("\ntext", "\n    text")))
        cells = done["serialization"]["cells"]
        self.assertEqual([cell["code"] for cell in cells], ["a = 1", newer, "b = a + 1"])
        self.assertEqual(cells[1]["options"], {"hide_code": True, "name": "newer"})
        self.assertFalse(done["serialization"]["valid"])

    def test_a_py_with_a_cell_that_does_not_parse_is_refused_if_text_outside_of_cells_would_be_lost(self):
        broken = BROKEN.replace("NEWER", "x = = 1")
        above = broken.replace("\n\n@app.cell(hide", "\nz = 1\n\n@app.cell(hide")
        for lost, line in ((broken + "print(1)\n", 27), (above, 12)):
            self.assertIn(f"line {line}: marimo drops", self.read("py", lost)["error"]["message"])
        with self.subTest("marimo adds it to the cell before, when that does not parse"):
            below = broken.replace("\n\n@app.cell\ndef last", "\nz = 1\n\n@app.cell\ndef last")
            self.assertIn("z = 1", self.read("py", below)["serialization"]["cells"][1]["code"])

    def read_jupyter(self, *codes):
        cells = [{"cell_type": "code", "source": code, "metadata": {}} for code in codes]
        return self.read("ipynb", json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))["serialization"]

    def test_display_of_jupyter_works_in_an_imported_notebook_and_adds_to_the_output_of_its_cell(self):
        notebook = self.read_jupyter("x = 1", "x = x + 1\ndisplay('first', x)\ndisplay('second')")
        codes = {cell["cell_id"]: cell["code"] for cell in notebook["cells"]}
        self.assertEqual(codes.pop("display"), "from IPython.display import display")
        kernel = host.open({"display": "from IPython.display import display", **codes})
        run = kernel.run(*codes)
        last = list(codes)[-1]
        self.assertEqual((codes[last].split("\n")[0], run.status(last)), ("x_1 = x + 1", "success"))
        shown = json.dumps([message for message in run.messages if message["op"] == "cell-op" and message.get("cell_id") == last])
        self.assertRegex(shown, "first.*2.*second")

    def test_display_is_not_imported_where_a_cell_defines_it_or_none_uses_it(self):
        for codes in (("def display(x): return x", "display(3)"), ("from IPython.display import display\ndisplay(1)",), ("'display'",)):
            self.assertNotIn("display", [cell["cell_id"] for cell in self.read_jupyter(*codes)["cells"]])
        file = self.write("ipynb", serialization={**SAMPLE, "cells": [{"cell_id": "a", "code": "display(1)", "options": {}}]})
        self.assertEqual(len(self.read("ipynb", file)["serialization"]["cells"]), 1, "a notebook of Troupe comes back as it was")

    def write(self, format, **request):
        done, exited = host.convert("write", format, {"serialization": SAMPLE, **request})
        self.assertEqual((done["op"], done["ok"], exited["code"]), ("convert-done", True, 0), done)
        return done["content"]

    def assert_broken(self, format, content, *says):
        done = self.read(format, content)
        self.assertEqual((done["ok"], done["error"]["code"]), (False, "unreadable_notebook"))
        for text in says:
            self.assertIn(text, done["error"]["message"])

    def pip(self, *lines, header="", installs=False):
        """Returns the warning of the converter about these lines of a Jupyter notebook, and the text above the notebook."""
        sources = ["\n".join(["x = 1", *lines]), *([header] if header else [])]
        cells = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []} for source in reversed(sources)]
        notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        done, _ = host.convert("read", "ipynb", {"content": notebook, "installs": installs})
        self.assertTrue(done["ok"], done)
        serialization = done["serialization"]
        for cell in serialization["cells"]:
            self.assertNotIn("\n!", f"\n{cell['code']}")
        return done["pip"], serialization["app"]["options"].get("header")

    def test_pip_lines_of_jupyter_become_no_dependencies(self):
        found, header = self.pip("!pip install humanize>=4 'pandas[excel]==2.*'", "%pip install -q polars")
        self.assertEqual(found, {"requirements": ["humanize>=4", "pandas[excel]==2.*", "polars"], "others": []})
        self.assertIsNone(header)

    def test_only_whole_requirements_count(self):
        for line, requirements, others in [
            ("!pip install -r requirements.txt", [], ["-r requirements.txt"]),
            ("!pip install requirements.txt", [], ["requirements.txt"]),
            ("!pip install -e .", [], ["-e ."]),
            ("!pip install humanize && echo done", ["humanize"], ["&& echo done"]),
            ("!pip install -Uq humanize > /dev/null 2>&1", ["humanize"], []),
            ("!pip install humanize --extra-index-url https://example.org/simple", [], None),
            ("!pip install --index-url=https://example.org/simple humanize", [], None),
            ("!pip install $PKG {name} humanize", ["humanize"], ["$PKG", "{name}"]),
            ("!pip install git+https://example.org/a.git ./b", [], ["git+https://example.org/a.git", "./b"]),
            ("!{sys.executable} -m pip install humanize; ls", ["humanize"], ["ls"]),
            ("!pip install --unknown humanize", [], ["--unknown humanize"]),
        ]:
            with self.subTest(line):
                found, header = self.pip(line)
                self.assertEqual((found["requirements"], header), (requirements, None))
                self.assertTrue(found["others"] == others if others is not None else found["others"], found)
        for line in ("!pip list", "!ls pip install", "print('!pip')"):
            self.assertIsNone(self.pip(line)[0], line)

    def test_pip_lines_become_dependencies_on_request(self):
        _, header = self.pip("!pip install humanize>=4 -r more.txt", installs=True)
        self.assertEqual(header, '# /// script\n# dependencies = ["humanize>=4"]\n# ///')

    def test_dependencies_that_a_file_names_itself_are_kept(self):
        script = '# /// script\n# dependencies = ["humanize==4.9"]\n# ///'
        _, header = self.pip("!pip install Humanize polars", header=script)
        self.assertEqual(header, script)
        _, header = self.pip("!pip install Humanize polars", header=script, installs=True)
        self.assertEqual(header, '# /// script\n# dependencies = ["humanize==4.9", "polars"]\n# ///')

    def test_the_parameters_cell_of_papermill_takes_the_arguments_of_the_notebook(self):
        parameters = 'month = 1  # of the year\nregion: str = "eu"\n_own = 2\na, b = 1, 2'
        sources = [("import os", []), (parameters, ["parameters"]), ("print(month, region)", []), ("month = 9", ["parameters"])]
        cells = [
            {"cell_type": "code", "source": source, "metadata": {"tags": tags}, "outputs": []} for source, tags in sources
        ]
        notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        codes = [cell["code"] for cell in self.read("ipynb", notebook)["serialization"]["cells"]]
        [code] = [code for code in codes if "# of the year" in code]
        self.assertTrue(
            code.endswith(
                "_arguments = _marimo.cli_args()\n"
                + "\n".join(f"{name} = _arguments.get('{name}', {name})" for name in ("month", "region", "a", "b"))
            ),
            code,
        )
        self.assertEqual(sum("_arguments" in code for code in codes), 1)
        # Exported and imported again, it stays as it is.
        saved = {**SAMPLE, "cells": [{"cell_id": f"c{at}", "code": code, "options": {}} for at, code in enumerate(codes)]}
        done, _ = host.convert("write", "ipynb", {"serialization": saved})
        back = [cell["code"] for cell in self.read("ipynb", done["content"])["serialization"]["cells"]]
        self.assertEqual(back, codes)

    def test_the_names_of_a_parameters_cell_are_found_beside_commands_of_ipython(self):
        for source, always, perhaps in (
            ("%matplotlib inline\nmonth = 1", ["month"], []),
            ("!ls \\\n  -l\nmonth = 1\nmonth?", ["month"], []),
            ("%%capture out\nmonth = 1", ["month"], []),
            ("files = !ls\nmonth = 1", ["files", "month"], []),
            ("%%bash\nmonth=1", [], []),
            ('text = """\n%x\n"""', ["text"], []),
            ("m = (1 +\n% 3)", [], []),
            ("m = (7\n% 3)", ["m"], []),
            ("(a, [b]) = 1, (2,)\nx = y = 1", ["a", "b", "x", "y"], []),
            ("month: int\nif True:\n    %time\n    n = 2", [], ["month", "n"]),
            ("def f():\n    inner = 1\nclass C:\n    member = 2\n[i for i in ()]", [], []),
        ):
            with self.subTest(source):
                self.assertEqual(parameters_cell.find_names(source), (always, perhaps))

    def test_py_keeps_code_and_options(self):
        back = self.read("py", self.write("py"))["serialization"]
        self.assertEqual([cell["code"] for cell in back["cells"]], [cell["code"] for cell in SAMPLE["cells"]])
        self.assertEqual([cell["options"] for cell in back["cells"]], [cell["options"] for cell in SAMPLE["cells"]])
        self.assertEqual(
            (back["app"], back["valid"], back["version"], back["ui_values"]), (SAMPLE["app"], False, "1", {})
        )
        self.assertEqual([cell["cell_id"] for cell in back["cells"]], ["setup", "Hbol", "MJUe", "vblA", "bkHC"])

    def test_text_above_a_notebook_is_kept(self):
        header = '# Copyright us\n# /// script\n# requires-python = ">=3.11"\n# dependencies = ["polars"]\n# ///\n\n"""About it"""'
        content = header + "\n\n" + self.write("py")
        back = self.read("py", content)["serialization"]
        self.assertEqual(back["app"]["options"], {**SAMPLE["app"]["options"], "header": header})
        self.assertTrue(self.write("py", serialization=back).startswith(header + "\n"))
        markdown = self.write("md", serialization=back)
        self.assertEqual(self.read("md", markdown)["serialization"]["app"]["options"]["header"], header)

    def test_a_header_that_would_run_something_is_not_written(self):
        for header in ("import os", "x = = 1", 5, "# " + "x" * 70_000):
            app = {"options": {"header": header}}
            self.assertTrue(self.write("py", serialization={**SAMPLE, "app": app}).startswith("import marimo"), header)

    def test_a_jupyter_notebook_of_another_language_is_refused_by_name(self):
        cell = {"cell_type": "code", "source": "1", "metadata": {}}
        for metadata in ({"language_info": {"name": "R"}}, {"kernelspec": {"name": "ir", "language": "R"}}):
            self.assert_broken("ipynb", json.dumps({"cells": [cell], "metadata": metadata}), "a notebook in R")
        for metadata in ({"language_info": {"name": "python"}}, {"kernelspec": {"language": "Python"}}, {"kernelspec": 5}):
            self.assertTrue(self.read("ipynb", json.dumps({"cells": [cell], "metadata": metadata}))["ok"])

    def test_md_keeps_code_and_all_options_but_column(self):
        back = self.read("md", self.write("md"))["serialization"]
        self.assertEqual([cell["code"] for cell in back["cells"][2:]], [cell["code"] for cell in SAMPLE["cells"][2:]])
        self.assertEqual(back["cells"][3]["options"], {"disabled": True, "expand_output": True})

    def test_md_keeps_tabs_in_code_and_in_prose(self):
        prose = 'mo.md(r"""\n- a\n\t- b\n\n```makefile\nall:\n\techo\n```\n""")'
        codes = ["import marimo as mo", 'x = "a\tb"\nif x:\n\ty = 1', prose]
        cells = [{"cell_id": f"c{at}", "code": code, "options": {}} for at, code in enumerate(codes)]
        written = self.write("md", serialization={**SAMPLE, "cells": cells})
        self.assertIn("\n```makefile\nall:\n\techo\n```", written)
        self.assertNotIn("mo.md(", written)
        self.assertEqual([cell["code"] for cell in self.read("md", written)["serialization"]["cells"]], codes)

    def test_ipynb_keeps_code_and_options_and_takes_results(self):
        text = self.write("ipynb", results=RESULTS)
        outputs = [output["output_type"] for cell in json.loads(text)["cells"] for output in cell.get("outputs", [])]
        self.assertEqual(sorted(outputs), ["display_data", "stream"])
        back = self.read("ipynb", text)["serialization"]
        self.assertEqual([cell["code"] for cell in back["cells"]], [cell["code"] for cell in SAMPLE["cells"]])

    def test_html_holds_the_state_of_widgets_and_nothing_forged(self):
        def opened(model, **members):
            message = {"method": "open", "state": {"name": model}, "buffer_paths": [], "buffers": [], **members}
            return {"op": "model-lifecycle", "model_id": model, "message": message}

        def code(url):
            return {"esm_spec": {"url": url, "hash": "h"}}

        widgets = [
            opened("shown", **code("data:text/javascript,1"), buffer_paths=[["picture"]], buffers=["AAcB"]),
            opened("from-a-file", **code("./@file/5-name.js")),
            opened("</script><script>alert(1)", **code("https://example.org/a.js")),
            {"op": "model-lifecycle", "model_id": 5},
            "nonsense",
        ]
        page = self.write("html", results=RESULTS, assetUrl="/x", widgets=json.dumps(widgets))
        (state,) = re.findall(r"modelNotifications: Object\.freeze\((.*)\),\n", page)
        found = json.loads(state)
        self.assertEqual([one["model_id"] for one in found], ["shown", "</script><script>alert(1)"])
        self.assertEqual(found[0]["message"]["buffers"], ["AAcB"])
        self.assertNotIn("<script>alert(1)", page)

    def test_html_holds_the_results_and_our_own_front_end(self):
        page = self.write("html", results=RESULTS, title="Sales", assetUrl="/static/marimo")
        for text in (r"\u003Cpre\u003E2\u003C/pre\u003E", '"/static/marimo/', "Sales.py"):
            self.assertTrue(text in page, text)
        self.assertFalse("cdn.jsdelivr.net" in page)

    def test_py_keeps_strings_with_characters_that_only_look_like_the_end_of_a_line(self):
        code = 'x = "a\x0cb\u2028c\x85d"\nif x:\n    y = "\x1c"'
        cells = [{"cell_id": "a", "code": code, "options": {}}]
        back = self.read("py", self.write("py", serialization={**SAMPLE, "cells": cells}))["serialization"]
        self.assertEqual([cell["code"] for cell in back["cells"]], [code])
        parts = self.read("py", f"# %%\n{code}\n# %%\nz = 1\n")["serialization"]
        self.assertEqual([cell["code"] for cell in parts["cells"]], [code, "z = 1"])

    def test_a_notebook_with_code_that_marimo_would_drop_is_refused_with_its_line(self):
        head = "import marimo\n\napp = marimo.App()\n\n"
        cell = "@app.cell\ndef _():\n    x = 1\n    return\n\n"
        guard = 'if __name__ == "__main__":\n    app.run()\n'
        setup = "with app.setup:\n    import os\n\n"
        self.assertTrue(self.read("py", head + setup + cell + "# a comment\n\n" + cell + guard)["ok"])
        for line, content in (
            (10, head + cell + "def helper():\n    return 42\n\n" + cell + guard),
            (10, head + cell + setup + guard),
            (1, "import os\n" + head + cell + guard),
            (13, head + cell + guard + "\nprint('end')\n"),
        ):
            self.assert_broken("py", content, f"line {line}:", "outside of cells", "Move it into a cell")

    def test_raw_cells_of_a_jupyter_notebook_are_shown_and_not_run(self):
        raw = {"cell_type": "raw", "source": ["---\n", "title: a ``` b"], "metadata": {}}
        back = self.read("ipynb", json.dumps({"cells": [raw]}))["serialization"]
        self.assertTrue(back["valid"])
        self.assertIn("````text\n---\ntitle: a ``` b\n````", back["cells"][-1]["code"])

    def test_images_that_are_attached_to_markdown_of_a_jupyter_notebook_are_kept(self):
        attachments = {"a b.png": {"image/png": "iVBO\nRw0="}, "c.txt": {"text/plain": "c"}, "d.png": "no bundle"}
        source = "![a](attachment:a%20b.png) ![c](attachment:c.txt) ![d](attachment:d.png) ![e](attachment:e.png)"
        cell = {"cell_type": "markdown", "source": source, "metadata": {}, "attachments": attachments}
        back = self.read("ipynb", json.dumps({"cells": [cell]}))["serialization"]
        kept = source.replace("attachment:a%20b.png", "data:image/png;base64,iVBORw0=")
        self.assertIn(kept, back["cells"][-1]["code"])

    def test_a_byte_order_mark_is_not_part_of_a_file(self):
        for format, content in (("py", "x = 1"), ("ipynb", '{"cells": []}'), ("md", "---\ntitle: T\n---\n\nText")):
            self.assertTrue(self.read(format, "\ufeff" + content)["ok"], format)
        self.assertEqual(self.read("md", "\ufeff---\ntitle: T\n---\n\nText")["serialization"]["app"]["options"], {"app_title": "T"})

    def test_a_plain_script_becomes_one_cell_and_a_marked_one_several(self):
        plain = self.read("py", "import os\nprint(os.name)\n")["serialization"]
        self.assertEqual([cell["code"] for cell in plain["cells"]], ["import os\nprint(os.name)"])
        marked = self.read("py", "# %%\nimport os\n# %% [markdown]\n# # Title\n# %%\nprint(os.name)\n")["serialization"]
        codes = [cell["code"] for cell in marked["cells"]]
        self.assertEqual((codes[-3], "# Title" in codes[-2], codes[-1]), ("import os", True, "print(os.name)"), codes)

    def test_a_jupyter_notebook_keeps_cells_that_do_not_parse(self):
        cells = [{"cell_type": "code", "source": source, "metadata": {}} for source in (["a = 1\n", "a"], "x = = 1")]
        back = self.read("ipynb", json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))["serialization"]
        self.assertEqual(([cell["code"] for cell in back["cells"]], back["valid"]), (["a = 1\na", "x = = 1"], False))

    def test_a_jupyter_notebook_of_format_3_has_its_cells(self):
        cells = [
            {"cell_type": "heading", "level": 2, "source": ["A\n", "title"], "metadata": {}},
            {"cell_type": "markdown", "source": ["some *text*"]},
            {"cell_type": "code", "input": ["a = 1\n", "a"], "language": "python", "outputs": [], "prompt_number": 1},
            {"cell_type": "code", "language": "python"},
        ]
        old = {"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": cells}]}
        read = self.read("ipynb", json.dumps(old))
        codes = [cell["code"] for cell in read["serialization"]["cells"]]
        self.assertTrue(any("## A title" in code for code in codes) and any("some *text*" in code for code in codes), codes)
        self.assertIn("a = 1\na", codes)
        cells[2]["language"] = "julia"
        self.assert_broken("ipynb", json.dumps(old), "julia")
        present = [{"cell_type": "markdown", "source": "text", "language": "markdown", "metadata": {}}]
        self.read("ipynb", json.dumps({"cells": present, "metadata": {}, "nbformat": 4}))

    def test_the_error_for_a_broken_script_has_the_line(self):
        self.assert_broken("py", "x = 1\ny = (\n", "line 2", "never closed")
        self.assert_broken("py", "x = 1\ny = 2\0\n", "line 2", "null bytes")
        self.assert_broken("py", "(" * 5000, "line 1")

    def test_the_error_for_a_broken_jupyter_notebook_has_the_line_or_cell(self):
        self.assert_broken("ipynb", '{\n "cells": [,]}', "line 2, column 12")
        self.assert_broken("ipynb", "[]", "JSON object")
        self.assert_broken("ipynb", "{}", "no list of cells")
        for sheets in ("3", "[3]", '[{"cells": 3}]'):
            self.assert_broken("ipynb", f'{{"worksheets": {sheets}}}', "no list of cells")
        self.assert_broken("ipynb", '{"worksheets": [{"cells": [3]}]}', "cell 1: ")
        good = {"cell_type": "code", "source": "1", "metadata": {}}
        for bad in (3, {"cell_type": "code", "source": 3}, {"source": "1"}, {**good, "metadata": []}):
            self.assert_broken("ipynb", json.dumps({"cells": [good, bad]}), "cell 2: ")

    def test_the_error_for_broken_markdown_has_the_line(self):
        self.assert_broken("md", "---\ntitle: a\nx: [\n---\n# t\n", "line 3")

    def test_hostile_files_get_an_error(self):
        self.assert_broken("ipynb", "[" * 100_000, "nested too deeply")
        self.assert_broken("py", "-" * 300_000 + "1", "too")
        self.assert_broken("py", 3, "not text")

    def test_the_snippets_are_those_of_marimo_and_none_of_their_code_is_run(self):
        done, exited = host.convert("list", "snippets", {})
        self.assertEqual((done["ok"], exited["code"]), (True, 0), done)
        snippets = json.loads(done["content"])["snippets"]
        folder = pathlib.Path(marimo.__file__).parent / "_snippets" / "data"
        self.assertEqual(len(snippets), len(list(folder.glob("*.py"))))
        with tempfile.TemporaryDirectory() as some:
            for name in ("cli-args-0", "duckdb-1", "env-0", "polars-3"):
                shutil.copy(folder / f"{name}.py", some)
            config = {"snippets": {"include_default_snippets": False, "custom_paths": [some]}}
            theirs = json.loads(msgspec.json.encode(asyncio.run(read_snippets(config))))["snippets"]
        titles = [snippet["title"] for snippet in theirs]
        ours = [snippet for snippet in snippets if snippet["title"] in titles]
        self.assertEqual([without_ids(one) for one in ours], [without_ids(one) for one in theirs])

    def test_a_conversion_is_bounded_in_time_and_memory(self):
        id, frames = host.connect({"direction": "read", "format": "py"}, op="convert")
        self.assertEqual(frames.read()["op"], "convert-ready")
        pid = host.wait_for("forked", id)["pid"]
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            limits = {line[:26].strip(): line[26:].split()[:2] for line in file}
        self.assertEqual(limits["Max cpu time"], ["30", "35"])
        self.assertEqual(limits["Max data size"], [str(1 << 30)] * 2)
        host.tell(op="signal", id=id, signal=9)
        self.assertEqual((frames.read(), host.wait_for("exited", id)["signal"]), (None, 9))


if __name__ == "__main__":
    unittest.main()
