# tier: whole, because it forks many generations of kernels
"""The zygote: its first report, the orders it refuses, and the state that its kernels inherit."""

import os
import signal
import unittest

from support import Host, is_alive, wait_until

LIBRARIES = "numpy pyarrow pandas duckdb sqlglot altair matplotlib.pyplot"
USES = """
import json, io, sys
import numpy, pandas, pyarrow, pyarrow.parquet, duckdb, altair, sqlglot, matplotlib.pyplot as plt, polars
done = {}
done["blas"] = bool(numpy.allclose(numpy.eye(200) @ numpy.ones((200, 200)), 1))
frame = pandas.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 3]})
done["groupby"] = frame.groupby("k").v.sum().to_dict()
buffer = io.BytesIO()
frame.to_parquet(buffer)
done["parquet"] = pandas.read_parquet(buffer).v.tolist()
done["duckdb"] = duckdb.sql("select sum(v) from frame").fetchall()[0][0]
done["polars"] = polars.DataFrame({"a": [1, 2]}).lazy().sum().collect()["a"][0]
done["sqlglot"] = sqlglot.transpile("select 1")[0]
"""


class Saying(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host(LIBRARIES)
        cls.addClassCleanup(cls.host.stop)

    def test_hello_says_that_marimo_fits_and_comes_before_the_libraries(self):
        hello = self.host.hello
        self.assertEqual(
            {key: hello[key] for key in ("op", "marimo", "supported", "missing", "threads")},
            {"op": "hello", "marimo": "0.25.2", "supported": True, "missing": [], "threads": 1},
        )
        self.assertEqual(hello["confinement"].split(":")[0] in ("full", "partial", "none"), True)

    def test_libraries_are_preloaded_and_leave_one_thread(self):
        kernel = self.host.open({"a": USES, "b": "print(json.dumps(done))"})
        outcome = kernel.run("b")
        self.assertEqual(outcome.status("b"), "success", outcome.outputs)
        self.assertEqual(
            __import__("json").loads(outcome.printed),
            {
                "blas": True, "groupby": {"a": 4, "b": 2}, "parquet": [1, 2, 3], "duckdb": 6, "polars": 3,
                "sqlglot": "SELECT 1",
            },
        )  # fmt: skip
        preloaded = wait_preloaded(self.host)
        self.assertEqual((preloaded["libraries"], preloaded["threads"]), (LIBRARIES.split(), 1))
        fresh = self.host.fork().evaluate(
            "[m in __import__('sys').modules for m in ('numpy', 'pandas', 'matplotlib.pyplot')]"
        )
        self.assertEqual(fresh, [True, True, True])

    def test_plots_tables_and_charts_are_formatted(self):
        wait_preloaded(self.host)
        kernel = self.host.open(
            {
                "plot": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.gca()",
                "table": "import pandas\npandas.DataFrame({'a': [1]})",
                "chart": "import altair\naltair.Chart(pandas.DataFrame({'a': [1]})).mark_bar().encode(x='a')",
            }
        )
        outputs = kernel.run("plot", "table", "chart").outputs
        self.assertIn("image/png", outputs["plot"]["mimetype"] + outputs["plot"]["data"])
        self.assertIn("<marimo-table", outputs["table"]["data"])
        self.assertEqual(outputs["chart"]["mimetype"].startswith("application/vnd.vega"), True)

    def test_kernels_draw_different_random_numbers(self):
        wait_preloaded(self.host)

        def draw():
            kernel = self.host.open({"a": "import random, numpy\nprint(random.random(), numpy.random.rand())"})
            return kernel.run("a").printed

        self.assertEqual(len({draw(), draw(), draw()}), 3)


def wait_preloaded(host):
    if not hasattr(host, "preloaded"):
        host.preloaded = host.wait_for("preloaded")
    return host.preloaded


class Refusing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.addClassCleanup(cls.host.stop)

    def test_invalid_orders_are_refused_with_their_id_and_the_next_one_works(self):
        orders = {
            b"{": None, b"[]": None, b"\xff": None, b'{"op":"dance","id":"x"}': "x", b'{"op":"fork","id":"y"}': "y",
            b'{"op":"convert","id":"z","connection":{},"memory":"much"}': "z",
        }  # fmt: skip
        for line, id in orders.items():
            self.host.tell_raw(line)
            refused = self.host.wait_for("refused")
            self.assertEqual((refused["id"], bool(refused["error"])), (id, True), line)
        self.assertEqual(self.host.open({"a": "1"}).run("a").status("a"), "success")

    def test_a_limit_that_does_not_exist_is_refused(self):
        self.host.tell(op="fork", id="l", connection={}, limits={"FUN": 1})
        self.assertEqual(self.host.wait_for("refused")["id"], "l")

    def test_a_signal_for_a_kernel_that_is_gone_is_ignored(self):
        kernel = self.host.open({})
        kernel.end()
        kernel.signal(signal.SIGINT)
        self.host.tell(op="signal", id="never was", signal=9)
        self.assertEqual(self.host.open({"a": "1"}).run("a").status("a"), "success")

    def test_a_kernel_whose_socket_is_missing_ends_and_the_report_says_so(self):
        self.host.tell(op="fork", id="s", connection={"path": "/nowhere/s", "token": "t"})
        exited = self.host.wait_for("exited", "s")
        self.assertEqual((exited["code"], exited["signal"]), (70, None))


class Serving(unittest.TestCase):
    def test_forks_work_from_hello_on_while_libraries_are_being_loaded(self):
        host = Host(LIBRARIES)
        self.addCleanup(host.stop)
        self.assertEqual(host.open({"a": "1"}).run("a").status("a"), "success")
        self.assertEqual([line for line in host.lines if line["op"] == "preloaded"], [])
        self.assertEqual(host.wait_for("preloaded")["threads"], 1)
        self.assertEqual(host.open({"a": "import pandas"}).run("a").status("a"), "success")

    def test_a_library_that_is_not_installed_is_skipped(self):
        host = Host("no_such_library sqlglot")
        self.addCleanup(host.stop)
        self.assertEqual(host.wait_for("preloaded")["libraries"], ["no_such_library", "sqlglot"])

    def test_forty_kernels_start_at_once(self):
        host = Host()
        self.addCleanup(host.stop)
        kernels = [host.fork() for _ in range(40)]
        seqs = [kernel.start("execute-cells", cellIds=["a"], codes=[f"print({i})"]) for i, kernel in enumerate(kernels)]
        printed = [kernel.finish(seq).printed for kernel, seq in zip(kernels, seqs, strict=True)]
        self.assertEqual(printed, [f"{i}\n" for i in range(40)])

    def test_an_idle_host_takes_no_processor_time(self):
        host = Host()
        self.addCleanup(host.stop)
        kernels = [host.open({"a": "1"}) for _ in range(5)]
        for kernel in kernels:
            kernel.run("a")
        host.wait_for("preloaded")
        pids = [*host.children(), *(kernel.pid for kernel in kernels)]

        def switches():
            total = 0
            for pid in pids:
                for task in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{task}/status", encoding="ascii", errors="replace") as file:
                        total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
            return total

        at = wait_until(lambda: (first := switches()) == switches() and first, "rest")
        import time

        time.sleep(1.2)  # long enough for anything that polls each second
        self.assertLessEqual(switches() - at, 3 * len(pids))
        self.assertTrue(all(map(is_alive, pids)))


if __name__ == "__main__":
    unittest.main()
