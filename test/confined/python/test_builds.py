"""Errors of builds: the tools that a machine lacks."""

import os
import sysconfig
import tempfile
import unittest
from unittest import mock

import support  # noqa: F401  puts the sources on the path
from children.build_backend import find_lack


class Lacks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name

    def test_a_build_that_misses_a_compiler_says_that_the_machine_has_none(self):
        for said in (
            b"error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory",
            b"FileNotFoundError: [Errno 2] No such file or directory: 'gcc'",
            b"error: Unknown compiler(s): [['cc'], ['gcc'], ['clang']]",
        ):
            self.assertIn("no C compiler", find_lack(said, self.path))

    def test_a_compiler_is_not_blamed_where_there_is_one_or_none_is_needed(self):
        self.assertEqual(find_lack(b"ModuleNotFoundError: No module named 'gccx'", self.path), "")
        program = os.path.join(self.path, "cc")
        with open(program, "w"):
            os.chmod(program, 0o755)
        self.assertEqual(find_lack(b"error: command 'gcc' failed with exit code 1", self.path), "")

    def test_a_build_that_misses_the_headers_of_python_says_so(self):
        said = b"module.c:1:10: fatal error: Python.h: No such file or directory"
        with mock.patch.object(sysconfig, "get_path", lambda _: self.path):
            self.assertIn("headers of Python", find_lack(said, os.defpath))
            open(os.path.join(self.path, "Python.h"), "w").close()
            self.assertEqual(find_lack(said, os.defpath), "")


if __name__ == "__main__":
    unittest.main()
