"""The messages to people about failures of uv."""

import unittest

import support  # noqa: F401  isort: skip  puts the host on sys.path
from children.uv_failure import explain  # isort: skip


class Explanations(unittest.TestCase):
    def test_addresses_lose_passwords_and_queries(self):
        said = "error: Failed to fetch: `https://user:hush@files.example/a-1.whl?X-Signature=hush&b=hush`\n  Caused by: HTTP 403. Why?"
        self.assertEqual(explain(said, 2), "Failed to fetch: `https://files.example/a-1.whl` Caused by: HTTP 403. Why?")

    def test_a_failure_without_words_has_its_exit_code(self):
        self.assertEqual(explain(" × \n", 2), "uv ended with the exit code 2.")

    def test_a_full_disk_is_named_without_the_path_of_the_file(self):
        said = "error: failed to write to file `/data/packages/.making-1/cache/a.bin`: No space left on device (os error 28)"
        self.assertEqual(explain(said, 2), "The disk of the server is full, so the packages cannot be installed.")
