"""The kernel's reports about cells: which ran, which are stale, which cannot run, and why."""

import os
import textwrap
import unittest

from support import SCRATCH, Host


def setUpModule():
    global host
    host = Host()
    unittest.addModuleCleanup(host.stop)


class Opening(unittest.TestCase):
    def test_opening_runs_nothing_and_every_cell_is_stale(self):
        kernel = host.fork()
        opened = kernel.open({"a": "x = 1", "b": "x + 1"})
        self.assertEqual(opened.ran, [])
        self.assertEqual(opened.cells, {"a": [None, True, []], "b": [None, True, []]})
        self.assertEqual(
            {key: opened.done[key] for key in ("seq", "type", "error", "interrupted")},
            {"seq": 1, "type": "CreateNotebookCommand", "error": None, "interrupted": False},
        )

    def test_structural_errors_are_known_at_open_and_stay_known(self):
        kernel = host.fork()
        cells = {
            "p": "m = n",
            "q": "n = m",
            "r": "d = 1",
            "s": "d = 2",
            "t": "x = = 1",
            "u": "from os import *",
            "ok": "1",
        }
        expected = {
            "p": ["cycle"], "q": ["cycle"], "r": ["multiple-defs"], "s": ["multiple-defs"],
            "t": ["syntax"], "u": ["import-star"],
        }  # fmt: skip
        self.assertEqual(kernel.open(cells).structural(), expected)
        self.assertEqual(kernel.run("ok").structural(), expected)
        self.assertEqual(kernel.run(t="y = 1").structural(), {id: kinds for id, kinds in expected.items() if id != "t"})

    def test_code_that_cannot_be_compiled_has_a_syntax_error_that_says_why(self):
        deep, null = "-" * 5000 + "1", "x = '\0'"
        kernel = host.open({"a": "1"})
        for code, why in ((deep, "nested too deeply"), (null, "null bytes")):
            with self.subTest(why):
                outcome = kernel.run(a=code)
                (error,) = outcome.cells["a"][2]
                self.assertEqual(error["type"], "syntax")
                self.assertIn(why, error["msg"])
                self.assertNotIn("Traceback", error["msg"])
                judged = kernel.command("edit-cells", codes={"a": code}, configs={}, deleteIds=[], judge=["a"])
                self.assertEqual((judged.done["error"], judged.done["interrupted"]), (None, False))

    def test_values_of_ui_elements_are_there_when_their_cell_runs(self):
        kernel = host.fork()
        kernel.open({"a": "import marimo as mo\ns = mo.ui.slider(0, 10)", "b": "print(s.value)"}, {"a-0": 7})
        self.assertEqual(kernel.run("b").printed, "7\n")

    def test_an_element_of_an_embedded_notebook_keeps_the_value_that_is_set(self):
        kernel = host.fork()
        with open(os.path.join(host.work, "embedded.py"), "w", encoding="utf-8") as file:
            file.write(EMBEDDED)
        kernel.open({
            "imports": "import marimo as mo\nimport sys\nsys.path.insert(0, '.')\nfrom embedded import app",
            "embeds": "embedded = await app.embed()",
            "uses": "print(embedded.defs['double'])",
        })
        outcome = kernel.run("uses")
        self.assertEqual((outcome.printed, outcome.stale()), ("6\n", []))
        object_id = kernel.evaluate("embedded.defs['slider']._id")
        kernel.command("update-ui-element", objectIds=[object_id], values=[8], token="t", request=None)
        self.assertEqual(kernel.run("uses").printed, "16\n")


EMBEDDED = """
import marimo
app = marimo.App()

@app.cell
def _():
    import marimo as mo
    return (mo,)

@app.cell
def _(mo):
    slider = mo.ui.slider(0, 10, value=3)
    return (slider,)

@app.cell
def _(slider):
    double = slider.value * 2
    return (double,)
"""


class Running(unittest.TestCase):
    def test_a_dependent_runs_its_stale_ancestors_first_and_only_those(self):
        kernel = host.open({"a": "x = 1", "b": "y = x + 1", "c": "z = y * 10\nz"})
        self.assertEqual(kernel.run("c").ran, ["a", "b", "c"])
        again = kernel.run("a")
        self.assertEqual((again.ran, again.stale()), (["a"], ["b", "c"]))
        self.assertEqual(kernel.run(a="x = 4").ran, ["a"])
        self.assertIn(">50<", kernel.run("c").outputs["c"]["data"])

    def test_a_fresh_run_runs_all_ancestors_again(self):
        kernel = host.open({"i": "import os", "a": "x = os.getpid()", "b": "y = x", "c": "z = y", "other": "x"})
        kernel.run("c", "other")
        self.assertEqual(kernel.run("c").ran, ["c"])
        fresh = kernel.run("c", fresh=True)
        self.assertEqual((fresh.ran, fresh.stale()), (["i", "a", "b", "c"], ["other"]))
        self.assertEqual(kernel.run("c", fresh=False).ran, ["c"])

    def test_a_failed_ancestor_runs_again_when_its_dependent_is_requested(self):
        kernel = host.open({"e": "import os\ne = 1 if 'FIXED' in os.environ else 1 / 0", "f": "e + 1"})
        failed = kernel.run("f")
        self.assertEqual((failed.status("e"), failed.status("f")), ("exception", "cancelled"))
        self.assertEqual(failed.error_of("f")["exception_type"], "Ancestor raised")
        kernel.scratchpad("import os; os.environ['FIXED'] = '1'")
        fixed = kernel.run("f")
        self.assertEqual((fixed.ran, fixed.status("f")), (["e", "f"], "success"))

    def test_a_cell_that_stops_is_stopped_and_its_dependents_cancelled(self):
        kernel = host.open({"m": "import marimo as mo", "s": "mo.stop(True, 'no')\nv = 1", "d": "v"})
        stopped = kernel.run("d")
        self.assertEqual({id: stopped.status(id) for id in "msd"}, {"m": "success", "s": "stopped", "d": "cancelled"})

    def test_a_cell_that_exits_or_runs_out_of_recursion_is_an_exception(self):
        kernel = host.open({"a": "import sys\nsys.exit(3)", "b": "def f(): return f()\nf()"})
        outcome = kernel.run("a", "b")
        self.assertEqual((outcome.status("a"), outcome.status("b")), ("exception", "exception"))

    def test_new_code_that_does_not_parse_is_an_error_of_its_cell_and_the_kernel_goes_on(self):
        kernel = host.open({"a": "x = 1"})
        broken = kernel.run(a="x = = 1")
        self.assertEqual((broken.ran, broken.structural()), ([], {"a": ["syntax"]}))
        self.assertEqual(kernel.run(a="x = 2").status("a"), "success")

    def test_a_disabled_cell_does_not_run_and_is_stale(self):
        kernel = host.open({"a": "x = 1", "b": "y = x", "c": "y"})
        kernel.run("c")
        kernel.command("update-cell-config", configs={"b": {"disabled": True}})
        outcome = kernel.run("a", "c")
        self.assertEqual((outcome.ran, outcome.stale()), (["a"], ["b", "c"]))
        enabled = kernel.command("update-cell-config", configs={"b": {"disabled": False}})
        self.assertEqual(enabled.ran, [])
        self.assertEqual(kernel.run("c").ran, ["b", "c"])


class State(unittest.TestCase):
    CELLS = {"mo": "import marimo as mo", "s": "get, put = mo.state(0)"}

    def test_setting_a_state_reruns_its_cells_and_their_dependants(self):
        cells = {**self.CELLS, "show": "shown = get()\nshown", "next": "shown + 1", "set": "put(5)", "never": "get()"}
        kernel = host.open(cells)
        outcome = kernel.run("mo", "s", "show", "next", "set")
        self.assertEqual(outcome.ran, ["mo", "s", "show", "next", "set", "show", "next"])
        self.assertEqual((outcome.outputs["show"]["text"], outcome.outputs["next"]["text"]), ("5", "6"))
        self.assertEqual(outcome.stale(), ["never"])

    def test_a_cell_that_sets_its_own_state_without_end_is_ended_and_stale(self):
        kernel = host.open(
            {"mo": "import marimo as mo", "s": "get, put = mo.state(0, allow_self_loops=True)", "loop": "put(get() + 1)"}
        )
        outcome = kernel.run("mo", "s", "loop")
        self.assertEqual((outcome.ran.count("loop"), outcome.stale()), (101, ["loop"]))
        self.assertIn("its state was set 100 times in one run", outcome.printed)
        self.assertEqual(kernel.run("mo").status("mo"), "success")

    def test_code_outside_of_cells_marks_cells_stale_and_runs_none(self):
        kernel = host.open({**self.CELLS, "show": "get()"})
        kernel.run("show")
        outcome = kernel.scratchpad("put(7)")
        self.assertEqual((outcome.ran, outcome.stale()), (["__scratch__"], ["show"]))


class Editing(unittest.TestCase):
    def test_an_edit_without_a_run_makes_the_cell_and_its_descendants_stale(self):
        kernel = host.open({"a": "x = 4", "b": "y = x + 1", "c": "z = y * 10\nz"})
        kernel.run("c")
        edited = kernel.command("edit-cells", codes={"a": "x = 9", "n": "new = x"}, configs={}, deleteIds=[])
        self.assertEqual((edited.ran, edited.stale()), ([], ["a", "b", "c", "n"]))
        self.assertIn(">100<", kernel.run("c").outputs["c"]["data"])
        deleted = kernel.command("edit-cells", codes={}, configs={"c": {"hide_code": True}}, deleteIds=["n"])
        self.assertEqual((sorted(deleted.cells), deleted.stale()), (["a", "b", "c"], []))

    def test_deleting_a_cell_makes_its_dependents_stale_and_frees_its_name(self):
        kernel = host.open({"a": "x = 1", "b": "x"})
        kernel.run("b")
        deleted = kernel.command("delete-cell", cellId="a")
        self.assertEqual((sorted(deleted.cells), deleted.stale()), (["b"], ["b"]))
        self.assertEqual(kernel.run("b").error_of("b")["exception_type"], "NameError")
        self.assertEqual(kernel.run(n="x = 2").status("n"), "success")

    def test_an_edit_that_breaks_the_graph_is_reported_and_the_next_edit_can_repair_it(self):
        kernel = host.open({"a": "x = 1", "b": "y = 2"})
        broken = kernel.command("edit-cells", codes={"b": "x = 2"}, configs={}, deleteIds=[])
        self.assertEqual(broken.structural()["b"], ["multiple-defs"])
        self.assertEqual(kernel.command("edit-cells", codes={"b": "y = 3"}, configs={}, deleteIds=[]).structural(), {})


class Console(unittest.TestCase):
    def test_a_character_that_cannot_be_encoded_is_shown_as_its_escape(self):
        kernel = host.open({})
        self.assertEqual(kernel.scratchpad(r"print('\ud800')").printed, "\\ud800\n")
        self.assertEqual(kernel.scratchpad(r"raise ValueError('\ud800')").error_of(SCRATCH)["msg"], "\\ud800")

    def test_output_of_a_child_process_belongs_to_the_cell_during_which_it_was_printed(self):
        kernel = host.open({})
        for number in range(50):
            self.assertEqual(kernel.scratchpad(f"import os\n_ = os.system('echo {number}')").printed, f"{number}\n")

    def test_output_of_a_child_process_that_takes_long_to_arrive_still_belongs_to_its_cell(self):
        kernel = host.open({})
        slow = """import sys, time
write = sys.stdout.write
def write_slowly(text):
    time.sleep(0.5)  # as on a machine whose processors are busy
    return write(text)
sys.stdout.write = write_slowly"""
        self.assertIsNone(kernel.scratchpad(slow).error_of(SCRATCH))
        self.assertEqual(kernel.scratchpad("import os\n_ = os.system('echo late')").printed, "late\n")

    def test_a_cell_ends_while_a_child_process_that_outlives_it_writes_without_end(self):
        kernel = host.open({})
        start = "import builtins, subprocess\nbuiltins.child = subprocess.Popen(['yes'])"
        self.assertIsNone(kernel.scratchpad(start).error_of(SCRATCH))
        end = kernel.scratchpad("child.kill()\nprint('ended', child.wait())")
        self.assertIn("ended -9\n", end.printed)

    def test_a_thread_prints_for_the_run_that_started_it(self):
        kernel = host.open({})
        start = """import threading
go = threading.Event()
def tell():
    go.wait()
    print("late")
thread = threading.Thread(target=tell)
thread.start()
import builtins
builtins.found = (go, thread)"""
        kernel.scratchpad(start, run_id="first")
        later = kernel.scratchpad("go, thread = found\ngo.set()\nthread.join()\nprint('now')", run_id="second")
        printed = {}
        for message in later.messages:
            if message["op"] == "cell-op" and isinstance(message["console"], dict):
                printed[message["run_id"]] = printed.get(message["run_id"], "") + message["console"]["data"]
        self.assertEqual(printed, {"first": "late\n", "second": "now\n"})


    def test_lines_that_threads_print_at_once_all_come_and_keep_their_order(self):
        code = """
        import threading
        def tell(name):
            for i in range(500): print(f"{name} {i}\\n", end="", flush=i % 3 == 0)
        others = [threading.Thread(target=tell, args=(name,)) for name in "ab"]
        for thread in others: thread.start()
        tell("main")
        for thread in others: thread.join()
        """
        lines = host.open({"a": textwrap.dedent(code)}).run("a").printed.splitlines()
        for name in ("a", "b", "main"):
            self.assertEqual([line for line in lines if line.startswith(f"{name} ")], [f"{name} {i}" for i in range(500)])
        self.assertEqual(len(lines), 1500)


class CodeMode(unittest.TestCase):
    def test_a_block_edits_the_document_runs_cells_and_returns_its_changes(self):
        kernel = host.open({"a": "x = 1", "b": "y = x", "c": "z = y", "f": "1"})
        kernel.run("c")
        done = kernel.scratchpad(
            """import json, marimo._code_mode as cm
async with cm.get_context() as ctx:
    ctx.cells["a"].code
    ctx.edit_cell("a", code="x = 7")
    new = ctx.create_cell("w = x * 2\\nprint(w)\\nw", after="a")
    ctx.run_cell(new)
    ctx.delete_cell("f")
    ctx.set_app_options(width="full")
assert ctx.result.revision == ctx.result["revision"]
print(json.dumps(ctx.result))""",
            revision=41,
        )
        line = next(line for line in done.printed.splitlines() if line.startswith("{"))
        import json

        result = json.loads(line)
        new = result["changed"][1]
        self.assertEqual(
            {key: result[key] for key in ("revision", "changed", "deleted", "run", "errors")},
            {"revision": 43, "changed": ["a", new], "deleted": ["f"], "run": ["a", new], "errors": []},
        )
        self.assertEqual([line["data"] for line in result["console"][new]], ["14\n"])
        self.assertIn("14", result["outputs"][new]["data"])
        self.assertEqual(done.stale(), ["b", "c"])
        options = [message["options"] for message in done.messages if message["op"] == "bridge-app-options"]
        self.assertEqual(options, [{"width": "full"}])

    def test_a_block_whose_cell_fails_has_a_result_with_the_error(self):
        kernel = host.open({})
        done = kernel.scratchpad(
            """import marimo._code_mode as cm
async with cm.get_context() as ctx:
    ctx.run_cell(ctx.create_cell("1 / 0"))
print("errors", [error["exception_type"] for error in ctx.result.errors])"""
        )
        self.assertIn("errors ['ZeroDivisionError']", done.printed)

    def test_the_result_of_a_block_is_found_by_a_later_context_too(self):
        kernel = host.open({"a": "x = 1", "b": "y = 1"})
        kernel.scratchpad(
            """import marimo._code_mode as cm
async with cm.get_context() as ctx:
    ctx.move_cell("b", before="a")"""
        )
        later = kernel.scratchpad("import marimo._code_mode as cm\nprint(cm.get_context().result.changed)")
        self.assertIn("['b']", later.printed)

    def test_errors_that_cells_had_before_are_not_those_of_a_block_unless_it_runs_them(self):
        kernel = host.open({"a": "x = 1", "b": "x = 2"})
        block = """import marimo._code_mode as cm
async with cm.get_context() as ctx:
    ctx.{}
print("errors", [error["cell_id"] for error in ctx.result.errors])"""
        self.assertIn("errors []", kernel.scratchpad(block.format('create_cell("y = 1")')).printed)
        asked = kernel.scratchpad(block.format('run_cell("a")'))
        self.assertIn("errors ['a']", asked.printed)
        self.assertEqual([m["cells"] for m in asked.messages if m["op"] == "bridge-asked"], [["a"]])

    def test_app_options_are_checked_and_not_applied_when_their_block_fails(self):
        kernel = host.open({})
        block = "import marimo._code_mode as cm\nasync with cm.get_context() as ctx:\n    "
        for call in ("set_app_options(width='broad')", "set_app_options(depth=1)", "set_app_options(width='full'); 1 / 0"):
            refused = kernel.scratchpad(f"{block}ctx.{call}")
            self.assertEqual([m for m in refused.messages if m["op"] == "bridge-app-options"], [], call)
            self.assertIn(refused.error_of(SCRATCH)["exception_type"], ("ValueError", "ZeroDivisionError"))

    def test_a_block_that_would_define_a_name_twice_changes_nothing(self):
        kernel = host.open({"a": "x = 1"})
        block = 'import marimo._code_mode as cm\nasync with cm.get_context() as ctx:\n    ctx.create_cell("x = 0")'
        refused = kernel.scratchpad(block)
        self.assertIn("already defined in cell 'a'", refused.error_of(SCRATCH)["msg"])
        traceback = "".join(m["console"]["data"] for m in refused.messages if m["op"] == "cell-op" and m["console"])
        self.assertIn("_context.py", traceback)
        self.assertNotIn("src/confined/python", traceback)
        self.assertEqual(list(refused.cells), ["a"])

    def test_the_scratchpad_sees_the_notebook_and_adds_no_names_to_it(self):
        kernel = host.open({"a": "x = 9"})
        kernel.run("a")
        seen = kernel.scratchpad('import sys\nkeep = x + 1\nprint("out"); print("err", file=sys.stderr)\nkeep')
        self.assertEqual((seen.printed, ">10<" in seen.outputs[SCRATCH]["data"]), ("out\nerr\n", True))
        self.assertEqual(kernel.scratchpad("keep").error_of(SCRATCH)["exception_type"], "NameError")
        self.assertEqual(kernel.scratchpad("input()").error_of(SCRATCH)["exception_type"], "EOFError")


if __name__ == "__main__":
    unittest.main()
