"""Commands and their answers: never lost, never torn, never late."""

import signal
import time
import unittest

from support import COMPLETION, CONTROL, UI, Host


def setUpModule():
    global host
    host = Host()
    unittest.addModuleCleanup(host.stop)


def is_printed(text):
    return lambda message: (
        message["op"] == "cell-op"
        and (message["console"] or {}) != []
        and (isinstance(message["console"], dict) and text in message["console"]["data"])
    )


class Answers(unittest.TestCase):
    def test_a_command_that_makes_no_sense_is_answered_and_the_next_one_works(self):
        kernel = host.open({"a": "x = 1"})
        unknown = kernel.command("nonsense").done
        self.assertEqual((unknown["type"], unknown["cells"], "nonsense" in unknown["error"]), ("invalid", {}, True))
        self.assertIn("Assertion", kernel.command("execute-cells", cellIds=["a", "b"], codes=["1"]).done["error"])
        self.assertEqual(kernel.run("a").status("a"), "success")

    def test_frames_of_rubbish_on_every_channel_are_answered(self):
        kernel = host.open({"a": "1"})
        for channel in (CONTROL, UI, COMPLETION, 9):
            for body in (b"", b"{", b"\xff\xfe", b"[1]", b'{"type":3}'):
                kernel.frames.send_raw(channel, body)
                message = kernel.frames.read()
                self.assertEqual((message["op"], message["type"], message["seq"]), ("bridge-done", "invalid", None))
        self.assertEqual(kernel.run("a").status("a"), "success")

    def test_a_handler_that_throws_is_answered_with_its_error(self):
        kernel = host.open({"a": "1"})
        kernel.scratchpad(
            "import marimo._runtime.runtime as r\ndef fail(*a, **k): raise ValueError('broken')\nr.Kernel.run = fail"
        )
        done = kernel.run("a").done
        self.assertEqual((done["error"], done["cells"]["a"][1]), ("ValueError('broken')", True))

    def test_values_of_ui_elements_are_answered_by_their_token(self):
        kernel = host.open({"a": "import marimo as mo\ns = mo.ui.slider(0, 10)", "b": "print(s.value)"})
        kernel.run("a", "b")
        kernel.frames.send(UI, {"type": "update-ui-element", "objectIds": ["a-0"], "values": [4], "token": "mine"})
        done = kernel.read_until(lambda message: message["op"] == "bridge-done")[-1]
        self.assertEqual((done["token"], done["seq"], done["cells"]["b"][1]), ("mine", None, True))
        self.assertEqual(kernel.run("b").printed, "4\n")

    def test_completions_are_answered_beside_commands(self):
        kernel = host.open({"a": "some_name = 1"})
        kernel.run("a")
        kernel.frames.send(COMPLETION, {"type": "code-completion", "id": "1", "document": "some_na", "cellId": "b"})
        result = kernel.read_until(lambda message: message["op"] == "completion-result")[-1]
        self.assertEqual([option["name"] for option in result["options"]], ["some_name"])

    def test_stop_kernel_ends_the_process_with_exit_code_0(self):
        kernel = host.open({})
        kernel.start("stop-kernel")
        kernel.read_until(lambda message: message["op"] == "bridge-exit")
        exited = host.wait_for("exited", kernel.id)
        self.assertEqual((exited["code"], exited["signal"]), (0, None))


class Interrupts(unittest.TestCase):
    def interrupt(self, code, **more):
        kernel = host.open({"slow": code, **more})
        seq = kernel.start_run("slow", *more)
        before = kernel.read_until(is_printed("go"))  # at status "running" its first line has not run yet
        kernel.signal(signal.SIGINT)
        return kernel, kernel.finish(seq, before)

    def test_an_interrupt_ends_the_running_cell_and_cancels_its_dependents(self):
        kernel, outcome = self.interrupt("import time\nprint('go')\nwhile True: time.sleep(0.01)\ns = 1", after="s")
        self.assertEqual(
            (outcome.done["interrupted"], outcome.status("slow"), outcome.status("after")),
            (True, "interrupted", "cancelled"),
        )
        again = kernel.run(slow="s = 1")
        self.assertEqual((again.status("slow"), again.done["interrupted"]), ("success", False))

    def test_an_interrupt_ends_a_cell_that_awaits(self):
        _, outcome = self.interrupt("import asyncio\nprint('go')\nawait asyncio.sleep(60)")
        self.assertEqual((outcome.done["interrupted"], outcome.status("slow")), (True, "interrupted"))

    def test_an_interrupt_reaches_the_children_of_a_cell(self):
        code = "import subprocess\nr = subprocess.run(['sh', '-c', 'echo go; exec sleep 60'])"
        _, outcome = self.interrupt(code)
        self.assertEqual((outcome.done["interrupted"], outcome.status("slow")), (True, "interrupted"))

    def test_an_interrupt_ends_a_scratchpad_call(self):
        kernel = host.open({})
        seq = kernel.start_scratchpad("import time\nprint('go')\ntime.sleep(60)")
        before = kernel.read_until(is_printed("go"))
        kernel.signal(signal.SIGINT)
        self.assertTrue(kernel.finish(seq, before).done["interrupted"])

    def test_an_interrupt_ends_a_cell_that_prints_faster_than_anyone_reads_and_tears_no_frame(self):
        kernel = host.open({"a": "while True: print('x' * 1000)"})
        seq = kernel.start_run("a")
        before = kernel.read_until(is_printed("x"))
        kernel.signal(signal.SIGINT)
        outcome = kernel.finish(seq, before)
        self.assertEqual((outcome.done["interrupted"], outcome.status("a")), (True, "interrupted"))

    def test_cells_that_an_interrupted_run_did_not_reach_are_stale_and_run_again(self):
        kernel = host.open({"a": "import time\nx = 1", "b": "y = x", "c": "z = 1", "d": "y + z"})
        kernel.run("a", "b", "c", "d")
        slow = "import time\nprint('go')\nif True: time.sleep(60)\nx = 2"
        seq = kernel.start_run("c", "d", "b", a=slow)
        before = kernel.read_until(is_printed("go"))
        kernel.signal(signal.SIGINT)
        outcome = kernel.finish(seq, before)
        unrun = {id for id in "bcd" if id not in outcome.ran}
        self.assertEqual({id: outcome.cells[id][:2] for id in unrun}, {id: ["cancelled", True] for id in unrun})
        self.assertEqual(kernel.run("d", a="x = 3").status("d"), "success")

    def test_interrupts_at_any_moment_leave_a_kernel_that_works(self):
        kernel = host.open({f"c{i}": f"v{i} = v{i - 1} + 1\nprint(v{i})" if i else "v0 = 0" for i in range(20)})
        for delay_ms in range(40):
            seq = kernel.start_run(*kernel.codes)
            time.sleep(delay_ms / 1000)  # the moment is what is tried
            kernel.signal(signal.SIGINT)
            states = {}
            outcome = kernel.finish(seq)
            for message in outcome.messages:
                if message["op"] == "cell-op" and message["status"]:
                    states[message["cell_id"]] = message["status"]
            self.assertEqual({id for id, state in states.items() if state != "idle"}, set(), delay_ms)
            # an interrupt that came late takes one of the next runs, and no more
            self.assertIn("success", [kernel.run("c19").status("c19") for _ in range(2)], delay_ms)

    def test_an_interrupt_of_an_idle_kernel_is_ignored(self):
        kernel = host.open({"a": "1"})
        for _ in range(20):
            kernel.signal(signal.SIGINT)
        outcome = kernel.run("a")
        self.assertIn(outcome.status("a"), ("success", "interrupted"))  # the last signals may arrive during the run
        self.assertEqual(kernel.run("a").status("a"), "success")

    def test_an_interrupt_before_the_kernel_listens_is_ignored(self):
        for _ in range(5):
            kernel = host.fork()
            kernel.signal(signal.SIGINT)
            self.assertEqual(kernel.open({"a": "1"}).stale(), ["a"])


class Console(unittest.TestCase):
    def test_input_and_a_debugger_fail_at_once_for_nobody_can_answer(self):
        for question in ("input('name? ')", "import getpass\ngetpass.getpass()", "breakpoint()\npass"):
            with self.subTest(question):
                kernel = host.open({"q": question, "after": "1"})
                outcome = kernel.run("q")
                self.assertEqual(outcome.status("q"), "exception")
                self.assertEqual(outcome.outputs["q"]["data"][0]["exception_type"], "EOFError")
                self.assertEqual(kernel.run("after").status("after"), "success")

    def test_ten_mebibytes_of_lines_arrive_whole_and_in_order(self):
        lines = 10 * 2**20 // 64
        kernel = host.open({"a": f"for i in range({lines}): print(f'{{i:063d}}')"})
        outcome = kernel.run("a")
        self.assertEqual(outcome.printed, "".join(f"{i:063d}\n" for i in range(lines)))

    def test_a_cell_that_prints_more_than_is_read_waits(self):
        kernel = host.open({"a": "for i in range(40): print('x' * 900_000)\nimport sys\nn = 1"})
        seq = kernel.start_run("a")
        kernel.read_until(is_printed("x"))
        pages = 0

        def size():
            with open(f"/proc/{kernel.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[5]) * 4096

        start = size()
        for _ in range(50):  # nothing is read meanwhile: the kernel must not take all 36 MB into memory
            pages = max(pages, size() - start)
            time.sleep(0.002)
        self.assertLess(pages, 24 << 20)
        self.assertEqual(kernel.finish(seq).status("a"), "success")

    def test_stdout_and_stderr_keep_their_order(self):
        kernel = host.open({"a": "import sys\nfor i in range(3): print(i); print(i, file=sys.stderr)"})
        self.assertEqual(kernel.run("a").printed, "0\n0\n1\n1\n2\n2\n")

    def test_what_subprocesses_print_arrives_whole_also_when_reads_split_a_character(self):
        kernel = host.open(
            {"a": "import subprocess\nr = subprocess.run(['sh', '-c', 'yes ä€😀 | head -c 200000; echo; echo end'])"}
        )
        seq = kernel.start_run("a")
        messages = kernel.read_until(is_printed("end"))
        text = "".join(
            m["console"]["data"] for m in messages if m["op"] == "cell-op" and isinstance(m["console"], dict)
        )
        self.assertEqual(text[:18181], ("ä€😀\n" * 18181)[:18181])
        self.assertNotIn("\ufffd", text[:40000])
        kernel.finish(seq)

    def test_console_output_comes_before_the_cell_is_idle(self):
        kernel = host.open({f"c{i}": f"print('line {i}')" for i in range(50)})
        outcome = kernel.run(*kernel.codes)
        for i in range(50):
            ops = [
                message for message in outcome.messages if message["op"] == "cell-op" and message["cell_id"] == f"c{i}"
            ]
            printed = next(n for n, op in enumerate(ops) if is_printed(f"line {i}\n")(op))
            idle = next(n for n, op in enumerate(ops) if op["status"] == "idle")
            self.assertLess(printed, idle)

    def test_running_is_said_before_notebook_code_runs(self):
        kernel = host.open({"a": "x = 1", "b": "print(x)\nwhile True: pass"})
        seq = kernel.start_run("b")
        before = kernel.read_until(lambda m: m["op"] == "cell-op" and m["cell_id"] == "b" and m["status"] == "running")
        self.assertIn(("a", "idle"), [(m["cell_id"], m["status"]) for m in before if m["op"] == "cell-op"])
        kernel.read_until(is_printed("1"))
        kernel.signal(signal.SIGINT)
        kernel.finish(seq)


if __name__ == "__main__":
    unittest.main()
