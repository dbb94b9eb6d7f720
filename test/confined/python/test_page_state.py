import json
import unittest

import support  # noqa: F401  puts the sources on the path
from kernel import page_state
from kernel.page_state import PageState
from marimo._runtime.commands import ModelUpdateMessage


def encode(message):
    return json.dumps(message, separators=(",", ":")).encode()


def model(method, model_id="m", **members):
    return encode({"op": "model-lifecycle", "model_id": model_id, "message": {"method": method, **members}})


def opened(state, **members):
    return model("open", state=state, buffer_paths=[], buffers=[], **members)


def update(state, paths=(), buffers=()):
    return model("update", state=state, buffer_paths=list(paths), buffers=list(buffers))


class PageStateTest(unittest.TestCase):
    def setUp(self):
        self.state = PageState()

    def messages(self):
        return [json.loads(data) for data in self.state.messages()]

    def test_a_new_page_gets_one_open_of_a_widget_with_all_its_updates(self):
        self.state.take(opened({"a": 1, "b": 2}))
        self.state.take(update({"b": 3, "c": None}, [["c"]], ["Yg=="]))
        self.state.take(update({"c": None}, [["c"]], ["Yw=="]))
        (message,) = self.messages()
        self.assertEqual(message["message"]["method"], "open")
        self.assertEqual(message["message"]["state"], {"a": 1, "b": 3, "c": None})
        self.assertEqual(message["message"]["buffers"], ["Yw=="])

    def test_a_new_page_gets_the_changes_that_pages_have_made_without_code(self):
        write = ModelUpdateMessage(state={"a": 4, "c": None, "_esm": "steal()"}, buffer_paths=[["c"]])
        self.state.take_write("m", write, [b"b"])
        self.assertEqual(self.messages(), [], "of an unknown widget nothing is kept")
        self.state.take(opened({"a": 1, "_esm": "mine"}))
        self.state.take_write("m", write, [b"b"])
        (message,) = self.messages()
        self.assertEqual(message["message"]["state"], {"a": 4, "c": None, "_esm": "mine"})
        self.assertEqual(message["message"]["buffers"], ["Yg=="])

    def test_many_updates_of_a_widget_take_no_more_memory_than_its_state(self):
        self.state.take(opened({"a": 0}))
        for value in range(10_000):
            self.state.take(update({"a": value}))
        self.assertLess(self.state._bytes, 100 * (page_state.MAX_MODEL_UPDATES + 2) * 2)
        self.assertEqual(self.messages()[0]["message"]["state"], {"a": 9_999})

    def test_a_closed_widget_is_forgotten_and_messages_of_an_unknown_one_are_dropped(self):
        self.state.take(opened({}))
        self.state.take(model("close"))
        self.state.take(update({"a": 1}))
        self.assertEqual(self.messages(), [])
        self.assertEqual(self.state._bytes, 0)

    def test_a_later_table_of_values_replaces_the_earlier_one(self):
        self.state.take(encode({"op": "variable-values", "variables": [1]}))
        self.state.take(encode({"op": "variable-values", "variables": [2]}))
        self.assertEqual(self.messages(), [{"op": "variable-values", "variables": [2]}])

    def test_the_oldest_widgets_are_dropped_beyond_the_limit(self):
        large = "x" * (page_state.MAX_BYTES // 3)
        for number in range(4):
            self.state.take(
                model("open", f"m{number}", state={"a": large}, buffer_paths=[], buffers=[])
            )
        self.assertEqual([message["model_id"] for message in self.messages()], ["m2", "m3"])

    def test_the_state_of_widgets_is_saved_once_for_each_change(self):
        self.assertIsNone(self.state.take_unsaved())
        self.state.take(opened({"a": 1}))
        self.state.take(update({"a": 2}))
        saved, too_large = self.state.take_unsaved()
        self.assertEqual([message["message"]["state"] for message in json.loads(saved)], [{"a": 2}])
        self.assertEqual(too_large, [])
        self.state.take(model("custom", content=None, buffers=[]))
        self.assertIsNone(self.state.take_unsaved())
        self.state.take(model("close"))
        self.assertEqual(self.state.take_unsaved(), (b"[]", []))

    def test_a_widget_is_saved_up_to_the_limit_of_all_and_reported_once_beyond_it(self):
        room = page_state.MAX_SAVED_BYTES - len(b"[") - len(opened({"a": ""})) - len(b"]")
        self.state.take(opened({"a": "x" * room}), "cell")
        saved, too_large = self.state.take_unsaved()
        self.assertEqual((len(saved), too_large), (page_state.MAX_SAVED_BYTES, []))
        self.state.take(update({"a": "x" * (room + 1)}))
        saved, too_large = self.state.take_unsaved()
        self.assertEqual((saved, too_large), (b"[]", [("cell", page_state.MAX_SAVED_BYTES - 1)]))
        self.state.take(update({"b": 1}))
        self.assertEqual(self.state.take_unsaved(), (b"[]", []))

    def test_a_widget_that_is_too_large_to_be_kept_at_all_is_reported(self):
        self.state.take(opened({"a": "x" * page_state.MAX_BYTES}), "cell")
        _, too_large = self.state.take_unsaved()
        self.assertEqual([cell for cell, _ in too_large], ["cell"])


if __name__ == "__main__":
    unittest.main()
