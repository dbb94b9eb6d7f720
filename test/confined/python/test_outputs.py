"""Outputs of cells: for every value that notebook code gives, the kernel sends only fields that the server takes, and lives."""

import base64
import os
import random
import unittest

from support import Host, wait_until

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DATA_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
SEED = int(os.environ.get("FUZZ_SEED", "8"))
ROUNDS = int(os.environ.get("FUZZ_OUTPUTS", "60"))


def setUpModule():
    global host
    host = Host()
    unittest.addModuleCleanup(host.stop)


def showing(method, value):
    """A cell with a value that has one method of display."""
    return f"class Odd:\n    def {method}(self, *a, **k):\n        return {value}\nOdd()"


class Admission(unittest.TestCase):
    def setUp(self):
        self.kernel = host.open({})

    def show(self, code):
        """Returns (output of a cell with that code, the warnings that came with it)."""
        outcome = self.kernel.run(a=code)
        self.assertEqual(outcome.status("a"), "success", code)
        warnings = [message for message in outcome.messages if message["op"] == "bridge-warning"]
        return outcome.outputs.get("a"), warnings

    def test_a_picture_that_comes_with_metadata_is_shown(self):
        output, warnings = self.show(showing("_repr_png_", f"({PNG!r}, {{'width': 1}})"))
        self.assertEqual((output["mimetype"], output["data"], warnings), ("image/png", DATA_URL, []))

    def test_a_picture_in_base64_is_shown(self):
        output, warnings = self.show(showing("_repr_png_", repr(base64.b64encode(PNG).decode())))
        self.assertEqual((output["data"], warnings), (DATA_URL, []))

    def test_values_of_a_json_type_are_json(self):
        for value, shown in (("[1, 'a']", '[1,"a"]'), ("{'a': None}", '{"a":null}'), ("5", "5")):
            output, warnings = self.show(showing("_mime_", f"('application/json', {value})"))
            self.assertEqual((output["data"], warnings), (shown, []))

    def test_an_output_that_cannot_be_sent_is_lost_with_a_warning_and_the_cell_succeeds(self):
        for value, reason in (
            ("('text/html', 5)", "of type int, where text or bytes are needed."),
            ("('text/html', None)", "its value is None."),
            ("(5, 'x')", "its MIME type is of type int"),
            ("('no type', 'x')", "'no type' is not a MIME type."),
            (f"('application/json', {CYCLE})", "cannot be JSON"),
        ):
            with self.subTest(value):
                output, (warning,) = self.show(showing("_mime_", value))
                self.assertEqual((output["mimetype"], output["data"]), ("text/plain", ""))
                self.assertEqual((warning["cell_id"], warning["what"]), ("a", "An output"))
                self.assertIn(reason, warning["reason"])
                self.assertIn(warning["reason"], self.kernel.run("a").printed)

    def test_the_old_output_of_a_cell_does_not_stay_when_its_new_one_is_lost(self):
        self.show("1")
        output, _ = self.show(showing("_mime_", "('text/html', 5)"))
        self.assertEqual(output["data"], "")

    def test_members_of_a_bundle_are_admitted_as_they_would_be_alone(self):
        bundle = f"{{'image/png': ({PNG!r}, {{}}), 'application/x+json': {{'a': 1}}, '__metadata__': {{'b': 2}}}}"
        output, warnings = self.show(showing("_repr_mimebundle_", bundle))
        self.assertEqual(warnings, [])
        self.assertIn(DATA_URL, output["data"])
        self.assertIn('"application/x+json":{"a":1}', output["data"])

    def test_the_text_of_a_bundle_is_that_of_its_most_informative_member(self):
        for bundle, text in (
            ("{'text/html': '<b>page</b>', 'text/plain': 'plain'}", "plain"),
            ("{'text/html': '<b>page</b>', 'image/png': 'AAAA'}", "page"),
            ("{'image/png': 'AAAA', 'application/x+json': {'a': 1}}", "[image/png][application/x+json]"),
        ):
            output, _ = self.show(f"class Odd:\n    def _mime_(self):\n        return 'application/vnd.marimo+mimebundle', {bundle}\nOdd()")
            self.assertEqual(output["text"], text)

    def test_a_value_that_cannot_even_be_inspected_leaves_the_kernel_alive(self):
        for code in (
            "class Odd:\n    def __getattribute__(self, name):\n        raise SystemExit(3)\nOdd()",
            "class Odd:\n    def __repr__(self):\n        raise SystemExit(3)\nOdd()",
            "class Odd:\n    def __repr__(self):\n        return 5\nOdd()",
        ):
            outcome = self.kernel.run(a=code)
            self.assertEqual(outcome.outputs["a"]["data"], "", code)
        self.assertIn(">2<", self.kernel.run(b="1 + 1").outputs["b"]["data"])

    def test_an_error_message_of_any_length_arrives_and_is_bounded(self):
        outcome = self.kernel.run(a="raise ValueError('x' * 70_000_000)")
        message = outcome.error_of("a")["msg"]
        self.assertEqual((outcome.status("a"), message[:3]), ("exception", "xxx"))
        self.assertLess(len(message), 1_000_000)

    def test_text_that_gathers_while_the_server_does_not_read_comes_in_messages_of_bounded_size(self):
        mark = os.path.join(host.work, "printed")
        seq = self.kernel.start_run(
            a=f"for n in range(3000):\n    print(f'{{n:06}}' + 'y' * 993)\nopen({mark!r}, 'w').close()"
        )
        wait_until(lambda: os.path.exists(mark), "the end of the loop")  # nothing is read meanwhile
        outcome = self.kernel.finish(seq)
        consoles = [message["console"] for message in outcome.messages if message.get("console")]
        sizes = [len(line["data"]) for console in consoles for line in (console if isinstance(console, list) else [console])]
        self.assertEqual(sum(sizes), 3_000_000)
        self.assertLessEqual(max(sizes), 1 << 18)
        self.assertEqual(outcome.printed.split()[-1], "002999" + "y" * 993)

    def test_fields_that_the_server_does_not_read_are_not_sent(self):
        code = "import json\nx = {}\nfor _ in range(200):\n    x = {'x': x}\n"
        code += "from marimo._messaging.notification import DatasetsNotification\n"
        code += "from marimo._messaging.notification_utils import broadcast_notification\n"
        code += "broadcast_notification(DatasetsNotification(tables=[x]))"
        ops = {message["op"] for message in self.kernel.run(a=code).messages}
        self.assertNotIn("datasets", ops)
        self.assertNotIn("variable-values", ops)


METHODS = """
    _mime_ _display_ _repr_html_ _repr_png_ _repr_jpeg_ _repr_svg_ _repr_json_ _repr_markdown_ _repr_latex_ _repr_text_
    _repr_mimebundle_ __repr__ __str__
""".split()
MIMETYPES = [
    "'text/html'", "'text/plain'", "'image/png'", "'application/json'", "'application/vnd.marimo+mimebundle'",
    "'text/markdown'", "'application/vnd.vegalite.v5+json'", "'x' * 3000", "''", "None", "7", "b'text/html'", "'a/b\\n'",
]  # fmt: skip
VALUES = [
    "None", "5", "1.5", "float('nan')", "True", "2 ** 80", "''", "'x'", "'\\ud800'", "b''", "b'\\xff\\x00'", "bytearray(3)",
    "memoryview(b'x')", "[]", "[1, [2]]", "()", "(1,)", "('a', {})", "(b'a', {})", "(1, 2, 3)", "{}", "{'a': 1}",
    "{1: 2}", "{(1, 2): 3}", "{'image/png': b'x'}", "{'text/html': 5}", "{'text/plain': ['a']}", "{'a/b': object()}",
    "{'application/json': {'a': {1, 2}}}", "set()", "object", "object()", "Ellipsis", "range(3)", "lambda: 1", "self",
    "type('S', (str,), {'__str__': lambda s: 1 / 0})('sub')", "type('B', (bytes,), {})(b'sub')", "1 / 0", "exit(2)",
    "iter([])", "open", "Exception('x')", "__import__('datetime').date(2020, 1, 1)", "'x' * 9_000_000", "['x'] * 20_000",
]  # fmt: skip
DEEP = "__import__('functools').reduce(lambda x, _: [x], range({}), 1)"
CYCLE = "(lambda x: x.append(x) or x)([])"


def odd_cell(dice):
    """The code of a cell that shows something odd."""
    value = dice.choice([*VALUES, DEEP.format(dice.choice([100, 5000])), CYCLE])
    if dice.random() < 0.2:
        return f"import marimo as _mo\nself = 1\n_mo.output.{dice.choice(['replace', 'append'])}({value})"
    if dice.random() < 0.2:
        return f"class self: pass\n{value}"
    if dice.random() < 0.15:
        return f"class E(Exception):\n    def {dice.choice(['__str__', '__repr__'])}(self):\n        return {value}\nraise E()"
    method = dice.choice(METHODS)
    if method == "_mime_" and dice.random() < 0.8:
        value = f"({dice.choice(MIMETYPES)}, {value})"
    return showing(method, value)


class Fuzz(unittest.TestCase):
    def test_outputs_of_every_kind_leave_the_kernel_in_a_form_that_the_server_takes(self):
        dice, kernel = random.Random(SEED), host.open({})
        for count in range(ROUNDS):
            code = odd_cell(dice)
            with self.subTest(seed=SEED, round=count, code=code):
                outcome = kernel.run(a=code)
                self.assertIn(outcome.status("a"), ("success", "exception"))
                self.assertTrue([op for op in outcome.messages if op["op"] == "cell-op" and op["status"] == "idle"])
                self.assertIsNone(outcome.done["error"])
                self.assertIsNotNone(outcome.outputs.get("a"))
                for op in outcome.messages:
                    self.check(op)

    def check(self, op):
        """Checks the fields in the way of the server's decoders."""
        if op["op"] == "bridge-warning":
            self.assertTrue(all(type(op[name]) is str for name in ("cell_id", "what", "reason")))
        if op["op"] != "cell-op":
            return
        console = op["console"] or []
        for output in (op["output"], *(console if isinstance(console, list) else [console])):
            if output is None:
                continue
            self.assertIs(type(output["mimetype"]), str)
            self.assertLess(len(output["mimetype"]), 400)
            if output["channel"] == "marimo-error":
                self.assertTrue(all(type(error["type"]) is str for error in output["data"]))
            else:
                self.assertIs(type(output["data"]), str)


class Tracebacks(unittest.TestCase):
    def test_a_traceback_has_the_colours_of_marimo(self):
        from outputs import sendable
        from marimo._messaging.tracebacks import _highlight_traceback

        text = 'Traceback (most recent call last):\n  File "x", line 1, in f\n    f(a="<b>")\n    ^\nValueError: x & y\n'
        for _ in range(2):  # the second one with a lexer that was used before
            self.assertEqual(sendable.highlight_traceback(text), _highlight_traceback(text))


if __name__ == "__main__":
    unittest.main()
