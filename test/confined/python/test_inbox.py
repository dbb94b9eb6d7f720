"""The zygote reads orders in linear time and bounded memory, and keeps nothing of them."""

import os
import unittest

from support import Host

from forking.inbox import MAX_ORDER_BYTES, Inbox


class Reading(unittest.TestCase):
    def setUp(self):
        reader, self.writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.inbox = Inbox(reader)

    def tearDown(self):
        if self.writer is not None:
            os.close(self.writer)

    def read(self, data):
        os.write(self.writer, data)
        self.inbox.read()
        return [line and bytes(line) for line in self.inbox.lines()]

    def test_lines_come_whole_however_they_are_cut(self):
        self.assertEqual(self.read(b"on"), [])
        self.assertEqual(self.read(b"e\ntwo\nth"), [b"one", b"two"])
        self.assertEqual(self.read(b"ree\n\n"), [b"three", b""])
        os.close(self.writer)
        self.writer = None
        self.assertFalse(self.inbox.read())

    def test_a_line_of_the_largest_size_is_read_and_a_longer_one_is_left_out(self):
        largest = b"x" * MAX_ORDER_BYTES

        def give(*pieces):
            return [line for piece in pieces for line in self.read(piece)]

        half = MAX_ORDER_BYTES // 2
        self.assertEqual(give(largest[:half], largest[half:], b"\nnext\n"), [largest, b"next"])
        pieces = [b"y" * half] * 40
        self.assertEqual(give(*pieces, b"the end\nnext\nand", b" another\n"), [None, b"next", b"and another"])

    def test_each_byte_is_searched_once(self):
        searched = 0

        class Counting(bytearray):
            def find(self, mark, start, end):
                nonlocal searched
                at = super().find(mark, start, end)
                searched += (end if at < 0 else at + 1) - start
                return at

        self.inbox._buffer = Counting(self.inbox._buffer)
        self.inbox._view = memoryview(self.inbox._buffer)
        sent = 0
        for _ in range(50):
            for piece in [b"z" * 1000] * 60 + [b"\n"]:
                sent += len(piece)
                self.read(piece)
        self.assertEqual(searched, sent)

    def test_a_line_is_erased_once_it_was_read_and_everything_on_request(self):
        os.write(self.writer, b"first secret\nsecond secret\nthe rest")
        self.inbox.read()
        lines = self.inbox.lines()
        next(lines), next(lines)
        self.assertNotIn(b"first", self.inbox._buffer)
        self.assertIn(b"second", self.inbox._buffer)
        self.assertEqual(list(lines), [])
        self.assertEqual(bytes(self.inbox._buffer).strip(b"\0"), b"the rest")
        self.inbox.erase()
        self.assertEqual(bytes(self.inbox._buffer).strip(b"\0"), b"")


class Refusing(unittest.TestCase):
    def test_an_order_that_is_too_long_is_refused_and_the_next_one_works(self):
        host = Host()
        self.addCleanup(host.stop)
        host.tell_raw(b'{"op":"fork","id":"' + b"x" * (20 << 20) + b'"}')
        self.assertEqual(host.wait_for("refused")["error"], "an order of more than 65536 bytes")
        self.assertEqual(host.open({"a": "1"}).run("a").status("a"), "success")


if __name__ == "__main__":
    unittest.main()
