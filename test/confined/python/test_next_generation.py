# tier: whole, because it forks many generations of kernels
"""The next generation of the zygote: it loads libraries while the first one continues, and then forks in its place."""

import os
import signal
import tempfile
import unittest

from support import Host, is_alive, wait_until

SLOW = """
import os, time
while not os.path.exists({gate!r}):
    time.sleep(0.002)
"""
ENDLESS = "import time\nprint('begun')\nwhile True:\n    time.sleep(0.01)"


class Gate:
    """A module whose import ends when the test opens the gate, and a host that preloads the module.
    """

    def __init__(self, test, code=SLOW):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "open")
        with open(os.path.join(folder.name, "gated.py"), "w", encoding="utf-8") as file:
            file.write(code.format(gate=self.path))
        self.host = Host("gated", env={"PYTHONPATH": folder.name})
        test.addCleanup(self.host.stop)

    def open(self):
        with open(self.path, "w", encoding="utf-8"):
            pass


def has_gated(kernel):
    return kernel.evaluate("'gated' in __import__('sys').modules")


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def name(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as file:
        return file.read().strip()


def next_generation(host):
    """The pid of the next generation, once it is there."""

    def find():
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if name(pid) == "troupe-preload" and parent(pid) == host.hello["pid"]:
                    return int(pid)
            except FileNotFoundError:
                pass
        return None

    return wait_until(find, "the next generation")


WIDGETS = "from IPython.display import display\n"  # as ipywidgets and anywidget do
CHARTS = """
from charts import shapes
try:
    import widgets
except ImportError:
    widgets = None
"""


class Loading(unittest.TestCase):
    def test_kernels_start_answer_and_are_signalled_while_a_library_is_imported(self):
        gate = Gate(self)
        kernel = gate.host.open({"a": "1", "endless": ENDLESS})
        self.assertEqual(kernel.run("a").status("a"), "success")
        gate.host.tell(op="ping")
        gate.host.wait_for("pong")
        self.assertEqual(has_gated(gate.host.fork()), False)
        kernel.end()
        self.assertEqual([line for line in gate.host.lines if line["op"] == "preloaded"], [])

    def test_the_import_uses_processor_time_that_others_leave_and_kernels_do_not(self):
        gate = Gate(self)
        pid = next_generation(gate.host)
        tasks = wait_until(lambda: len(tasks := os.listdir(f"/proc/{pid}/task")) == 2 and tasks, "the thread")
        niceness = wait_until(
            lambda: (found := [os.getpriority(os.PRIO_PROCESS, int(task)) for task in sorted(tasks, key=int)])[1]
            and found,
            "the niceness",
        )
        usual = os.getpriority(os.PRIO_PROCESS, gate.host.hello["pid"])  # not 0 if the tests themselves are niced
        self.assertEqual(niceness, [usual, 10])
        gate.open()
        gate.host.wait_for("preloaded")
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, gate.host.fork().pid), usual)

    def test_a_library_that_ends_the_process_is_left_out_and_harms_nothing_else(self):
        gate = Gate(self, SLOW + "os._exit(3)")
        pid = next_generation(gate.host)
        gate.open()
        wait_until(lambda: not is_alive(pid), "its end")
        self.assertEqual(gate.host.open({"a": "1"}).run("a").status("a"), "success")
        gate.host.tell(op="ping")
        gate.host.wait_for("pong")


class Displaying(unittest.TestCase):
    """A Python environment of the operator in which libraries import IPython, with kernels in which
    a cell imports it.
    """

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        files = {"widgets.py": WIDGETS, "charts/__init__.py": CHARTS, "charts/shapes.py": "SHAPES = 3", "plain.py": ""}
        os.mkdir(os.path.join(folder.name, "charts"))
        for path, code in files.items():
            with open(os.path.join(folder.name, path), "w", encoding="utf-8") as file:
                file.write(code)
        self.host = Host("plain charts widgets absent", env={"PYTHONPATH": folder.name})
        self.addCleanup(self.host.stop)
        self.host.wait_for("preloaded")

    def test_display_of_a_library_that_could_be_preloaded_shows_its_values_as_outputs(self):
        for cells in ({"a": "import widgets\nwidgets.display(5)"}, {"a": "import charts\ncharts.widgets.display(5)"}):
            run = self.host.open(cells).run("a")
            self.assertEqual((run.status("a"), run.printed), ("success", ""))
            self.assertIn("5", str(run.outputs["a"]["data"]))

    def test_a_library_that_is_preloaded_only_half_is_whole_in_kernels(self):
        kernel = self.host.fork()
        names = ["plain", "charts", "charts.shapes", "widgets", "IPython"]
        loaded = kernel.evaluate(f"[name for name in {names} if name in __import__('sys').modules]")
        self.assertEqual(loaded, ["plain"])
        whole = kernel.evaluate("(__import__('charts').shapes.SHAPES, __import__('charts').widgets is not None)")
        self.assertEqual(whole, [3, True])


class Loaded(unittest.TestCase):
    def setUp(self):
        self.gate = Gate(self)
        self.host = self.gate.host
        self.old = self.host.open({"endless": ENDLESS})
        self.gate.open()
        self.assertEqual(self.host.wait_for("preloaded")["threads"], 1)

    def test_kernels_have_the_library_from_then_on(self):
        self.assertEqual(has_gated(self.host.fork()), True)
        for line in (b"{", b'{"op":"dance","id":"x"}'):
            self.host.tell_raw(line)
            self.assertTrue(self.host.wait_for("refused")["error"])

    def test_kernels_of_both_generations_are_signalled_and_their_ends_reported(self):
        new = self.host.open({"endless": ENDLESS})
        for kernel in (self.old, new):
            kernel.start("execute-cells", cellIds=["endless"], codes=[ENDLESS])
            kernel.signal(signal.SIGKILL)
            self.assertEqual(self.host.wait_for("exited", kernel.id)["signal"], signal.SIGKILL)

    def test_forty_kernels_at_once_all_start(self):
        kernels = [self.host.fork() for _ in range(40)]
        self.assertEqual([has_gated(kernel) for kernel in kernels], [True] * 40)

    def test_every_kernel_ends_when_the_next_generation_ends(self):
        new, pid = self.host.open({}), next_generation(self.host)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, (self.host.hello["pid"], self.old.pid, new.pid))), "the end")

    def test_every_kernel_ends_when_the_first_generation_ends(self):
        new, pid = self.host.open({}), next_generation(self.host)
        os.kill(self.host.hello["pid"], signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, (pid, self.old.pid, new.pid))), "the end")

    def test_every_process_ends_with_the_server(self):
        new, pid = self.host.open({}), next_generation(self.host)
        self.host.process.stdin.close()
        wait_until(lambda: not any(map(is_alive, (pid, self.old.pid, new.pid))), "the end")

    def test_a_next_generation_that_is_stopped_does_not_answer(self):
        pid = next_generation(self.host)
        os.kill(pid, signal.SIGSTOP)
        self.host.tell(op="ping")
        os.kill(pid, signal.SIGCONT)
        self.host.wait_for("pong")


if __name__ == "__main__":
    unittest.main()
