"""Worker processes that cells start, and the place of the notebook among its files."""

import os
import unittest

from support import Host

USE = """
import multiprocessing as mp, dataclasses, math
FACTOR = 3
@dataclasses.dataclass
class Point:
    x: int
def double(n):
    return 2 * n
def work(n, more=1):
    return Point(math.floor(double(n)) * FACTOR + more)
if __name__ == "__main__":
    with mp.get_context({method!r}).Pool(2) as pool:
        result = pool.map_async(work, [1, 2]).get(20)
result
"""


def setUpModule():
    global host
    host = Host()
    unittest.addModuleCleanup(host.stop)


class Workers(unittest.TestCase):
    def test_functions_and_classes_of_cells_work_in_processes_of_every_kind(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                kernel = host.open({})
                outcome = kernel.run(a=USE.format(method=method))
                self.assertEqual(outcome.status("a"), "success", outcome.printed)
                self.assertEqual(outcome.outputs["a"]["text"], "[Point(x=7), Point(x=13)]")
                kernel.end()

    def test_a_pool_of_executors_takes_a_function_with_a_closure_and_one_that_calls_itself(self):
        code = """
import concurrent.futures, multiprocessing
def adder(n):
    def add(m):
        return n + m
    return add
def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)
with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
    result = [pool.submit(adder(2), 3).result(20), pool.submit(factorial, 5).result(20)]
result
"""
        kernel = host.open({})
        self.assertEqual(kernel.run(a=code).outputs["a"]["text"], "[5, 120]")


class Place(unittest.TestCase):
    def test_a_notebook_is_in_the_folder_of_its_files(self):
        kernel = host.open({"mo": "import marimo as mo", "a": "print(__file__, mo.notebook_dir(), mo.notebook_location())"})
        work = os.path.realpath(host.work)
        self.assertEqual(kernel.run("a").printed, f"{work}/notebook.py {work} {work}\n")

    def test_a_persistent_cache_lasts_from_one_kernel_to_the_next(self):
        cells = {
            "mo": "import marimo as mo",
            "a": "with mo.persistent_cache('kept'):\n    print('computed')\n    value = 41 + 1\nvalue",
        }
        first = host.open(cells).run("a")
        again = host.open(cells).run("a")
        self.assertEqual([first.printed, again.printed], ["computed\n", ""])
        self.assertEqual(again.outputs["a"]["text"], "42")
        self.assertTrue(os.path.isdir(os.path.join(host.work, "__marimo__", "cache")))


if __name__ == "__main__":
    unittest.main()
