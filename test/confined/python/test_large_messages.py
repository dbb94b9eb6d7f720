"""Messages so large that the server would end the kernel for them."""

import json
import os
import sys
import unittest

import support

sys.path.append(os.path.join(support.ROOT, "src/confined/notebook_modules"))

from troupe import channel, dbapi  # isort: skip

from kernel import bridge
from kernel.calls import Calls
from frames import HEAD, Limits, find_excess
from kernel.kernel_state import STATE, Asked
from kernel.outbox import MessageTooLarge, Outbox

ENOUGH = Limits(bytes=10_000, values=1_000, members=100, depth=64)


class AnsweringSocket:
    """Keeps the JSON that is sent through it, and answers each call at once."""

    def __init__(self):
        self.sent = []
        self.calls = None

    def sendall(self, data):
        while data:
            length, _ = HEAD.unpack_from(data)
            body, data = data[HEAD.size : HEAD.size + length - 1], data[HEAD.size + length - 1 :]
            message = json.loads(body)
            self.sent.append(message)
            if self.calls:
                self.calls.receive(message["id"].to_bytes(4, "little") + b'{"more":true}')


class Bounds(unittest.TestCase):
    def test_the_content_of_strings_counts_neither_as_values_nor_as_levels(self):
        for text in (",[{" * 10, '",[', '\\",[', "\\", '\\\\"[,{', "ä,😀["):
            body = json.dumps([text, text]).encode()
            self.assertIsNone(find_excess(body, Limits(1_000, values=2, members=9, depth=1)), body)
            self.assertEqual(find_excess(body, Limits(1_000, values=1, members=9, depth=1)), "2 values, and the limit is 1")

    def test_exactly_the_limit_is_accepted(self):
        body = b'{"a":[[1,2],{}]}'  # 4 brackets, 2 commas, 3 levels
        fits = Limits(len(body), values=6, members=1, depth=3)
        self.assertIsNone(find_excess(body, fits))
        for limits, excess in (
            (fits._replace(bytes=15), "16 bytes of JSON, and the limit is 15"),
            (fits._replace(values=5), "6 values, and the limit is 5"),
            (fits._replace(members=0), "1 members of one object, and the limit is 0"),
            (fits._replace(depth=2), "3 levels, and the limit is 2"),
        ):
            self.assertEqual(find_excess(body, limits), excess)

    def test_the_members_of_the_largest_object_count_and_those_of_others_do_not(self):
        inner = {"b": 1, "c": {"::": ":", "d": {}}}
        limits = ENOUGH._replace(members=3)
        for value in ([inner] * 9, {"x": inner, "y": [inner, {}], "z": inner}, {":{" * 9: ":"}):
            self.assertIsNone(find_excess(json.dumps(value).encode(), limits), value)
        for value in ({"w": inner, "x": inner, "y": [{}], "z": 0}, [[inner, {"a": {**inner, "e": [inner], "f": 0}}]]):
            excess = find_excess(json.dumps(value).encode(), limits)
            self.assertEqual(excess, "4 members of one object, and the limit is 3", value)


class Statements(unittest.TestCase):
    def setUp(self):
        self.addCleanup(channel.provide, None)

    def ask_within(self, limits):
        """Provides notebook code with a server that has these limits, and returns the list of messages sent to it."""
        sock = AnsweringSocket()
        sock.calls = Calls(Outbox(sock, limits))
        channel.provide(sock.calls.ask)
        return sock.sent

    def test_a_question_at_the_limit_is_asked_and_one_past_it_is_not(self):
        size = len('{"op":"kernel-call","id":1,"method":"execute","sql":"x"}')
        for limits, fits, exceeds in (
            (ENOUGH._replace(bytes=size), "x", "xx"),
            (ENOUGH._replace(values=7), [1, 2, 3], [1, 2, 3, 4]),
            (ENOUGH._replace(members=4), {"a": 1, "b": 2, "c": 3, "d": 4}, {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}),
            (ENOUGH._replace(depth=3), [[1]], [[[1]]]),
        ):
            sent = self.ask_within(limits)
            channel.ask("execute", sql=fits)
            with self.assertRaises(channel.TooLarge):
                channel.ask("execute", sql=exceeds)
            self.assertEqual([call["sql"] for call in sent], [fits])

    def test_a_statement_that_is_too_large_is_a_data_error_and_nothing_of_it_is_sent(self):
        sent = self.ask_within(ENOUGH)
        cursor = dbapi.connect("sales").cursor()
        for sql, parameters, excess in (
            ("x" * 10_000, (), "bytes of JSON, and the limit is 10,000"),
            ("insert", [b"x" * 7_600], "bytes of JSON, and the limit is 10,000"),
            ("insert", range(1_000), "values, and the limit is 1,000"),
        ):
            with self.assertRaisesRegex(dbapi.DataError, f"the statement and its parameters are too large: .*{excess}"):
                cursor.execute(sql, parameters)
        self.assertEqual(sent, [])
        cursor.execute("select 1")
        self.assertEqual([call["sql"] for call in sent], ["select 1"])


class Ends(unittest.TestCase):
    def setUp(self):
        self.addCleanup(setattr, STATE, "outbox", STATE.outbox)

    def answer(self, cells, error=None):
        """Returns how a command ends for the server if its cells have these verdicts."""
        sock = AnsweringSocket()
        STATE.outbox = Outbox(sock, ENOUGH)
        bridge.answer(Asked(seq=7), None, "ExecuteCellsCommand", error, False, cells)
        (done,) = sock.sent
        self.assertEqual((done["op"], done["seq"]), ("bridge-done", 7))
        return done

    def test_the_errors_of_a_variable_that_many_cells_define_are_shortened(self):
        names = [f"c{n}" for n in range(40)]
        errors = [{"type": "multiple-defs", "name": "x", "cells": names}]
        self.assertEqual(self.answer({"a": [None, False, errors]})["cells"]["a"][2], errors)
        cells = self.answer({name: [None, False, errors] for name in names})["cells"]
        self.assertEqual(list(cells), names)
        self.assertEqual(cells["c0"], [None, False, [{"type": "multiple-defs", "name": "x", "cells": names[:5]}]])

    def test_a_command_ends_however_many_cells_notebook_code_has_made(self):
        self.assertEqual(self.answer({f"c{n}": ["success", False, []] for n in range(1_000)})["cells"], {})

    def test_a_command_ends_however_long_its_error_is(self):
        self.assertTrue(self.answer({"a": [None, False, []]}, "ValueError" + "x" * 20_000)["error"].startswith("ValueErrorx"))


class CodeMode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = support.Host()
        cls.addClassCleanup(cls.host.stop)
        cls.kernel = cls.host.open({"a": "x = 1"})

    def refuse(self, line):
        """Returns why a block with this line is refused, and checks that it has changed nothing."""
        block = f"import marimo._code_mode as cm\nasync with cm.get_context() as ctx:\n    {line}"
        refused = self.kernel.scratchpad(block)
        told = {message["op"] for message in refused.messages}
        self.assertEqual(told & {"notebook-document-transaction", "bridge-app-options"}, set())
        self.assertEqual(list(refused.cells), ["a"])
        error = refused.error_of(support.SCRATCH)
        self.assertEqual(error["exception_type"], "ValueError")
        return error["msg"]

    def test_a_block_with_more_changes_than_the_server_takes_is_refused_and_changes_nothing(self):
        self.assertRegex(
            self.refuse('[ctx.create_cell("") for _ in range(25_000)]'),
            r"The changes of this block are too large, and none was made: [\d,]+ values, and the limit is 250,000",
        )
        self.assertIn(
            "bytes of JSON, and the limit is 31,457,280", self.refuse('ctx.create_cell("#" * 32_000_000)')
        )

    def test_app_options_that_the_server_would_not_save_are_refused(self):
        block = "import marimo._code_mode as cm\nasync with cm.get_context() as ctx:\n    ctx.set_app_options(app_title={})"
        fits = "x" * (65_536 - len('{"options":{"app_title":""}}'))
        taken = self.kernel.scratchpad(block.format(repr(fits)))
        self.assertIn({"app_title": fits}, [message.get("options") for message in taken.messages])
        self.assertIn("65,537 bytes as JSON, and the limit is 65,536", self.refuse(f"ctx.set_app_options(app_title={fits + 'x'!r})"))


class Notifications(unittest.TestCase):
    def test_one_of_too_many_values_is_discarded_and_the_next_is_sent(self):
        sock = AnsweringSocket()
        outbox = Outbox(sock, ENOUGH)
        for count in (1_100, 1):
            outbox.put(b'{"op":"variables","variables":%s}' % json.dumps([0] * count, separators=(",", ":")).encode())
        self.assertEqual([message["variables"] for message in sock.sent], [[0]])

    def test_one_is_discarded_for_its_levels_or_members_however_short_it_is(self):
        sock = AnsweringSocket()
        outbox = Outbox(sock, ENOUGH)
        nested = "[" * 63 + "]" * 63
        for value in (f"[{nested}]", json.dumps(dict.fromkeys(range(101))), nested, json.dumps(dict.fromkeys(range(100)))):
            outbox.put(b'{"op":"variables","variables":%b}' % value.encode())
        self.assertEqual([len(message["variables"]) for message in sock.sent], [1, 100])

    def test_a_new_page_gets_the_state_without_the_widgets_that_are_too_large(self):
        sock = AnsweringSocket()
        outbox = Outbox(sock, ENOUGH)
        for count in (101, 100):
            message = {"method": "open", "state": dict.fromkeys(range(count)), "buffer_paths": [], "buffers": []}
            sent = {"op": "model-lifecycle", "model_id": str(count), "message": message}
            outbox.put(json.dumps(sent, separators=(",", ":")).encode())
        outbox.follow((1).to_bytes(4, "little"))
        self.assertEqual([message.get("model_id") for message in sock.sent], [None, "100", None])

    def test_our_own_message_that_is_too_large_is_not_sent(self):
        sock = AnsweringSocket()
        with self.assertRaises(MessageTooLarge):
            Outbox(sock, ENOUGH).say(op="bridge-asked", cells=["x"] * 1_100)
        self.assertEqual(sock.sent, [])


if __name__ == "__main__":
    unittest.main()
