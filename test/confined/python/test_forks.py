# tier: whole, because it forks many generations of kernels
"""Forks of cells, and text that is printed past Python's stdout."""

import unittest

from support import Host

FORK = """
import os, sys
child = os.fork()
if child:
    print("ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    {then}
"""


def setUpModule():
    global host
    host = Host()
    unittest.addModuleCleanup(host.stop)


class Forks(unittest.TestCase):
    def setUp(self):
        self.kernel = host.open({})

    def test_a_fork_ends_with_its_cell_and_the_kernel_goes_on(self):
        for then, code in (("pass", 0), ("sys.exit(3)", 3), ("sys.exit()", 0), ("raise ValueError('in the child')", 1)):
            with self.subTest(then):
                outcome = self.kernel.run(a=FORK.format(then=then))
                self.assertEqual(outcome.status("a"), "success")
                # The text of a fork comes through a pipe of its own, so it may come after this.
                self.assertIn(f"ended with {code}", outcome.printed)
                self.assertEqual(self.kernel.run(b="5").outputs["b"]["text"], "5")

    def test_the_traceback_of_a_fork_is_text(self):
        printed = self.kernel.run(a=FORK.format(then="raise ValueError('in the child')")).printed
        self.assertIn("ValueError: in the child\n", printed)
        self.assertNotIn("<span", printed)

    def test_a_fork_tells_the_server_nothing(self):
        then = "import marimo as mo; mo.output.append('theirs'); os._exit(0)"
        outcome = self.kernel.run(a=FORK.format(then=then) + "\n'ours'")
        self.assertEqual([op["output"]["text"] for op in outcome.messages if op.get("output")], ["'ours'"])

    def test_printed_text_of_pool_processes_is_shown(self):
        code = "import multiprocessing as mp\np = mp.get_context('fork').Process(target=print, args=('from it',))\np.start(); p.join()"
        self.assertEqual(self.kernel.run(a=code).printed, "from it\n")


class Buffers(unittest.TestCase):
    def test_buffered_text_of_the_first_stdout_and_of_c_belongs_to_the_cell(self):
        kernel = host.open({})
        for code in (
            "import sys\nsys.__stdout__.write('late\\n'); None",
            "import sys\nsys.stdout.buffer.write(b'late\\n'); None",
            "import ctypes\nctypes.CDLL(None).puts(b'late'); None",
        ):
            self.assertEqual(kernel.run(a=code).printed, "late\n", code)
