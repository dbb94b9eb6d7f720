"""The end of a command reports the cells that may have changed, and variables only when one of them has changed."""

import unittest
from types import SimpleNamespace

from support import Host

from marimo._ast.compiler import compile_cell
from marimo._runtime.dataflow.graph import DirectedGraph

from kernel import verdicts
from kernel.kernel_state import STATE


def setUpModule():
    global host
    host = Host()
    unittest.addModuleCleanup(host.stop)


def reported(kernel, type, **fields):
    """Returns the ids of the cells in the answer to a command, and the reports of variables before it."""
    outcome = kernel.command(type, **fields)
    answer = outcome.messages[-1]
    variables = [message["variables"] for message in outcome.messages if message["op"] == "variables"]
    return sorted(answer["cells"]), variables


def run(kernel, **codes):
    return reported(kernel, "execute-cells", cellIds=list(codes), codes=list(codes.values()))


class Reports(unittest.TestCase):
    def test_a_run_reports_its_cells_and_their_dependents_only(self):
        for size in (10, 1_000):
            kernel = host.open({**{f"c{i}": f"v{i} = {i}" for i in range(size)}, "user": "v1"})
            cells, variables = run(kernel, c0="v0 = 5")
            self.assertEqual((cells, variables), (["c0"], []), size)
            run(kernel, c1="v1 = 1")
            cells, variables = run(kernel, c1="v1 = 2")
            self.assertEqual((cells, variables), (["c1", "user"], []), size)

    def test_variables_are_reported_when_a_cell_declares_or_uses_others(self):
        kernel = host.open({"a": "x = 1", "b": "2"})
        self.assertEqual(run(kernel, a="x = 2")[1], [])
        (variables,) = run(kernel, b="x")[1]
        self.assertEqual(variables, [{"name": "x", "declared_by": ["a"], "used_by": ["b"]}])
        self.assertEqual(run(kernel, b="x + 1")[1], [])
        (variables,) = run(kernel, a="1")[1]
        self.assertEqual(variables, [])
        self.assertEqual(run(kernel, a="2")[1], [])

    def test_a_question_about_other_code_reports_no_cell(self):
        kernel = host.open({"a": "x = 1", "b": "y = x", "c": "z = 1"})
        for _ in range(2):
            self.assertEqual(reported(kernel, "edit-cells", codes={"a": "x = z"}, judge=["a"])[0], [])

    def test_an_error_is_reported_when_it_comes_and_when_it_goes(self):
        kernel = host.open({"a": "x = 1", "b": "y = 1", "c": "z = 1"})
        cells, _ = run(kernel, b="x = 2")
        self.assertIn("b", cells)
        self.assertNotIn("c", cells)
        self.assertEqual(kernel.command("execute-cells", cellIds=["b"], codes=["y = 2"]).structural(), {})
        self.assertEqual(run(kernel, c="( = 1")[0], ["c"])
        self.assertEqual(kernel.command("execute-cells", cellIds=["c"], codes=["z = 2"]).structural(), {})

    def test_a_report_that_did_not_reach_the_server_comes_again(self):
        verdicts.install()
        graph = DirectedGraph()
        kernel = SimpleNamespace(graph=graph, errors={})
        graph.register_cell("a", compile_cell("x = 1", cell_id="a"))
        first = STATE.verdicts.take(kernel)
        self.assertEqual(first, {"a": [None, False, []]})
        STATE.verdicts.give_back()
        graph.cells["a"].set_run_result_status("success")
        self.assertEqual(STATE.verdicts.take(kernel), {"a": ["success", False, []]})
        self.assertEqual(STATE.verdicts.take(kernel), {})


if __name__ == "__main__":
    unittest.main()
