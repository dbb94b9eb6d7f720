"""Texts of notebooks and of kernels that are read in time in proportion to their length: with the square of it, each of these texts would
take many minutes."""

import unittest

import support  # noqa: F401  isort: skip  puts the host on sys.path
from script_block import find_block  # isort: skip

from outputs import shown_output


class LongTexts(unittest.TestCase):
    def test_many_beginnings_of_script_metadata_without_an_ending_are_read_once(self):
        self.assertIsNone(find_block("# /// script\n" * 500_000))
        text = "# /// script\n" * 500_000 + "\n# /// script\n# a = 1\n# ///\n"
        self.assertEqual(find_block(text).lines, ["# a = 1"])

    def test_many_beginnings_of_tags_without_an_ending_are_read_once(self):
        shown = shown_output.of_traceback("marimo-error", "application/vnd.marimo+traceback", "<" * 1_000_000)
        self.assertIn("<", str(shown.text))


class ScriptMetadata(unittest.TestCase):
    def test_a_block_ends_at_the_last_ending_of_its_comment(self):
        for text, lines in [
            ("# /// script\n# a = 1\n# ///", ["# a = 1"]),
            ("x\n# /// script\n# a = 1\n#\n# ///\n# b\n# ///\nx", ["# a = 1", "#", "# ///", "# b"]),
            ("# /// script\n# ///", None),
            ("# /// script\n#a\n# ///", None),
            ("# /// script \n# a\n# ///", None),
            ("# a\n# /// script\n# a = 1\n\n# ///", None),
        ]:
            found = find_block(text)
            self.assertEqual(None if found is None else found.lines, lines, text)
            if found is not None:
                self.assertTrue(text[found.start : found.end].startswith("# /// script\n"))
                self.assertTrue(text[found.start : found.end].endswith("\n# ///"))

    def test_characters_may_be_allowed_at_the_ends_of_the_first_and_the_last_line(self):
        self.assertEqual(find_block("# /// script \t\n# a\n# /// ", " \t").lines, ["# a"])


if __name__ == "__main__":
    unittest.main()
