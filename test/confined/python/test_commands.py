"""Commands and their answers: never lost, never torn, never late."""

import os
import re
import select
import signal
import textwrap
import time
import unittest

from support import COMPLETION, CONTROL, INTERRUPT, UI, Host, wait_until


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
    def test_an_invalid_command_gets_an_error_and_the_next_one_works(self):
        kernel = host.open({"a": "x = 1"})
        unknown = kernel.command("nonsense").done
        self.assertEqual((unknown["type"], unknown["cells"], "nonsense" in unknown["error"]), ("invalid", {}, True))
        self.assertIn("Assertion", kernel.command("execute-cells", cellIds=["a", "b"], codes=["1"]).done["error"])
        self.assertEqual(kernel.run("a").status("a"), "success")

    def test_invalid_frames_on_every_channel_get_an_error(self):
        kernel = host.open({"a": "1"})
        for channel in (CONTROL, UI, COMPLETION, INTERRUPT, 9):
            for body in (b"", b"{", b"\xff\xfe", b"[1]", b'{"type":3}'):
                kernel.frames.send_raw(channel, body)
                message = kernel.frames.read()
                self.assertEqual((message["op"], message["type"], message["seq"]), ("bridge-done", "invalid", None))
        self.assertEqual(kernel.run("a").status("a"), "success")

    def test_a_command_whose_handler_raises_ends_with_its_error(self):
        kernel = host.open({"a": "1"})
        kernel.scratchpad(
            "import marimo._runtime.runtime as r\ndef fail(*a, **k): raise ValueError('broken')\nr.Kernel.run = fail"
        )
        outcome = kernel.run("a")
        self.assertEqual((outcome.done["error"], outcome.stale()), ("ValueError('broken')", ["a"]))

    def test_an_update_of_ui_elements_ends_with_its_token(self):
        kernel = host.open({"a": "import marimo as mo\ns = mo.ui.slider(0, 10)", "b": "print(s.value)"})
        kernel.run("a", "b")
        kernel.frames.send(UI, {"type": "update-ui-element", "objectIds": ["a-0"], "values": [4], "token": "mine"})
        done = kernel.read_until(lambda message: message["op"] == "bridge-done")[-1]
        self.assertEqual((done["token"], done["seq"], done["cells"]["b"][1]), ("mine", None, True))
        self.assertEqual(kernel.run("b").printed, "4\n")

    def test_commands_that_marimo_merges_are_each_answered_under_their_own_seq(self):
        kernel = host.open({"a": "import marimo as mo\ns = mo.ui.slider(0, 10)", "b": "print(s.value)"})
        kernel.run("a", "b")
        update = {"method": "update", "state": {"n": 4}, "bufferPaths": []}
        model = {"modelId": "m", "message": update, "buffers": []}
        self.assertEqual(kernel.command("model", **model, token="1").done["type"], "ModelCommand")
        odd = {**model, "message": {**update, "bufferPaths": [[]]}, "buffers": [""]}
        self.assertEqual(kernel.command("model", **odd, token="2").done["seq"], kernel.seq)
        # while the scratchpad runs, four commands come to wait; each is answered
        kernel.start_scratchpad("import time\ntime.sleep(0.3)")
        waiting = [
            kernel.start("update-ui-element", objectIds=["a-0"], values=[4], token="3"),
            kernel.start("update-ui-element", objectIds=["a-0"], values=[5], token="4"),
            kernel.start("model", **model, token="5"),
            kernel.start("model", **model, token="6"),
        ]
        outcome = kernel.finish(waiting[-1])
        done = [message["seq"] for message in outcome.messages if message["op"] == "bridge-done"]
        self.assertEqual(done, [waiting[0] - 1, *waiting])
        self.assertEqual(kernel.run("b").printed, "5\n")

    def test_a_command_of_the_server_is_answered_although_the_notebook_gives_the_kernel_the_same_kind_of_command(self):
        kernel = host.open({"a": "import marimo as mo\ns = mo.ui.slider(0, 10)", "b": "print(s.value)"})
        kernel.run("a", "b")
        own = """
            import time
            from marimo._runtime.commands import UpdateUIElementCommand as Update
            from marimo._runtime.context import get_context
            get_context()._kernel.enqueue_control_request(Update.from_ids_and_values([("a-0", 7)]))
            time.sleep(0.3)"""
        kernel.start_scratchpad(textwrap.dedent(own))
        seq = kernel.start("update-ui-element", objectIds=["a-0"], values=[4], token="mine")
        done = kernel.finish(seq).done
        self.assertEqual((done["token"], done["error"]), ("mine", None))

    def test_a_command_that_gets_no_answer_ends_with_an_error_once_the_kernel_has_been_idle_for_a_while(self):
        kernel = host.open({"a": "x = 1"})
        # the next command vanishes, as in a marimo that handles it in another way; thirty seconds are a moment here
        kernel.scratchpad(
            """
            import marimo._runtime.kernel_lifecycle as lifecycle
            import marimo._runtime.runtime as runtime
            lifecycle.threaded_queue_reader.__globals__["MAX_SILENCE_S"] = 0.05
            handle = runtime.Kernel.handle_message
            async def vanish(self, request): runtime.Kernel.handle_message = handle
            runtime.Kernel.handle_message = vanish
            """.replace("\n            ", "\n")
        )
        done = kernel.run("a").done
        self.assertEqual((done["type"], done["cells"]), ("lost", {}))
        self.assertIn("without an answer", done["error"])
        self.assertEqual(kernel.run("a").status("a"), "success")

    def test_an_answer_that_is_too_large_for_the_server_is_sent_without_its_large_members(self):
        kernel = host.open({"a": "x = 1"})
        kernel.scratchpad(
            "import marimo._runtime.runtime as r\n"
            "outbox = r.Kernel.handle_message.__globals__['STATE'].outbox\n"
            "outbox._limits = outbox._limits._replace(values=500)"
        )
        ids = [f"{number}-0" for number in range(501)]
        done = kernel.command("update-ui-element", objectIds=ids, values=[0] * len(ids), token="1").done
        self.assertEqual((done["type"], "unknown" in done), ("UpdateUIElementCommand", False))

    def test_completions_are_answered_independently_of_commands(self):
        kernel = host.open({"a": "some_name = 1"})
        kernel.run("a")
        kernel.frames.send(COMPLETION, {"type": "code-completion", "id": "1", "document": "some_na", "cellId": "b"})
        result = kernel.read_until(lambda message: message["op"] == "completion-result")[-1]
        self.assertEqual([option["name"] for option in result["options"]], ["some_name"])

    def test_stop_kernel_ends_the_process_with_exit_code_0(self):
        kernel = host.open({})
        kernel.start("stop-kernel")
        exited = host.wait_for("exited", kernel.id)
        self.assertEqual((exited["code"], exited["signal"]), (0, None))


# waits until the kernel has handled that many SIGINTs which were announced
UNTIL_SIGNAL = """
def until_signal(count=1):
    import signal, time
    while signal.getsignal(signal.SIGINT)._arrived < count: time.sleep(0.001)
until_signal"""
# makes one of marimo's own steps wait for those signals
DELAYED = f"""
import marimo._runtime.runtime as runtime{UNTIL_SIGNAL}
def delay(step):
    return lambda *args, **more: until_signal() or step(*args, **more)
runtime.Kernel.{{0}} = delay(runtime.Kernel.{{0}})"""
RUN_CELL = """
import marimo._code_mode as cm
async with cm.get_context() as ctx:
    ctx.run_cell("a")
print("went on")"""


class Interrupts(unittest.TestCase):
    def interrupt(self, code, **more):
        kernel = host.open({"slow": code, **more})
        seq = kernel.start_run("slow", *more)
        before = kernel.read_until(is_printed("go"))  # at status "running" its first line has not run yet
        kernel.interrupt()
        return kernel, kernel.finish(seq, before)

    def test_an_interrupt_ends_the_running_cell_and_cancels_its_dependents(self):
        kernel, outcome = self.interrupt("import time\nprint('go')\nwhile True: time.sleep(0.01)\ns = 1", after="s")
        self.assertEqual(
            (outcome.done["interrupted"], outcome.status("slow"), outcome.status("after")),
            (True, "interrupted", "cancelled"),
        )
        again = kernel.run(slow="s = 1")
        self.assertEqual((again.status("slow"), again.done["interrupted"]), ("success", False))

    def test_the_traceback_of_an_interrupted_cell_ends_in_its_own_code(self):
        _, outcome = self.interrupt("import time\nprint('go')\nwhile True: time.sleep(0.01)")
        (traceback,) = outcome.tracebacks
        (place,) = re.findall(r"File .*", traceback)
        self.assertRegex(place, r"cell_slow.*line 3, in <module>")
        self.assertRegex(traceback, r"\nKeyboardInterrupt\n$")

    def test_an_interrupt_ends_a_cell_that_awaits(self):
        _, outcome = self.interrupt("import asyncio\nprint('go')\nawait asyncio.sleep(60)")
        self.assertEqual((outcome.done["interrupted"], outcome.status("slow")), (True, "interrupted"))

    def test_an_interrupt_that_does_not_wake_the_main_thread_ends_its_cell(self):
        # as when it comes just before the thread begins to sleep: another one takes the signal
        code = """
import signal, threading, time
def take():
    while not signal.getsignal(signal.SIGINT)._announced: time.sleep(0.001)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
threading.Thread(target=take).start()
print('go')
time.sleep(60)"""
        kernel = host.open({"slow": code})
        seq = kernel.start_run("slow")
        before = kernel.read_until(is_printed("go"))
        kernel.announce_interrupt(seq)
        outcome = kernel.finish(seq, before)
        self.assertEqual((outcome.done["interrupted"], outcome.status("slow")), (True, "interrupted"))

    def test_an_interrupt_reaches_the_children_of_a_cell(self):
        code = "import subprocess\nr = subprocess.run(['sh', '-c', 'echo go; exec sleep 60'])"
        _, outcome = self.interrupt(code)
        self.assertEqual((outcome.done["interrupted"], outcome.status("slow")), (True, "interrupted"))

    def test_an_interrupt_ends_a_scratchpad_call(self):
        kernel = host.open({})
        seq = kernel.start_scratchpad("import time\nprint('go')\ntime.sleep(60)")
        before = kernel.read_until(is_printed("go"))
        kernel.interrupt()
        self.assertTrue(kernel.finish(seq, before).done["interrupted"])

    def test_an_interrupt_ends_a_cell_that_prints_faster_than_is_read_and_leaves_every_frame_whole(self):
        kernel = host.open({"a": "while True: print('x' * 1000)"})
        seq = kernel.start_run("a")
        before = kernel.read_until(is_printed("x"))
        kernel.interrupt()
        outcome = kernel.finish(seq, before)
        self.assertEqual((outcome.done["interrupted"], outcome.status("a")), (True, "interrupted"))

    def test_cells_that_an_interrupted_run_did_not_reach_are_stale_and_run_again(self):
        kernel = host.open({"a": "import time\nx = 1", "b": "y = x", "c": "z = 1", "d": "y + z"})
        kernel.run("a", "b", "c", "d")
        slow = "import time\nprint('go')\nif True: time.sleep(60)\nx = 2"
        seq = kernel.start_run("c", "d", "b", a=slow)
        before = kernel.read_until(is_printed("go"))
        kernel.interrupt()
        outcome = kernel.finish(seq, before)
        unrun = {id for id in "bcd" if id not in outcome.ran}
        self.assertEqual({id: outcome.cells[id][:2] for id in unrun}, {id: ["cancelled", True] for id in unrun})
        self.assertEqual(kernel.run("d", a="x = 3").status("d"), "success")

    def test_an_interrupt_at_any_moment_ends_its_run_in_order_and_no_other(self):
        kernel = host.open({f"c{i}": f"v{i} = v{i - 1} + 1\nprint(v{i})" if i else "v0 = 0" for i in range(20)})
        for delay_ms in range(40):
            kernel.start_run(*kernel.codes)
            time.sleep(delay_ms / 1000)  # the delay chooses the moment
            kernel.interrupt()
            states = {}
            outcome = kernel.finish(kernel.seq)
            for message in outcome.messages:
                if message["op"] == "cell-op" and message["status"]:
                    states[message["cell_id"]] = message["status"]
            self.assertEqual({id for id, state in states.items() if state != "idle"}, set(), delay_ms)
            self.assertEqual(kernel.run("c19").status("c19"), "success", delay_ms)

    def test_an_interrupt_before_its_command_begins_ends_that_command_and_not_the_one_before(self):
        kernel = host.open({"first": f"{UNTIL_SIGNAL}()\nx = 1", "second": "print('ran')"})
        first, second = kernel.start_run("first"), kernel.start_run("second")
        kernel.interrupt(second)
        outcome = kernel.finish(first)
        self.assertEqual((outcome.done["interrupted"], outcome.status("first")), (False, "success"))
        outcome = kernel.finish(second)
        self.assertEqual((outcome.done["interrupted"], outcome.status("second")), (True, "cancelled"))
        self.assertEqual((outcome.printed, outcome.stale()), ("", ["second"]))
        self.assertEqual(kernel.run("second").printed, "ran\n")

    def test_an_interrupt_before_the_first_cell_of_its_command_is_not_lost(self):
        kernel = host.open({"a": "print('ran')\nwhile True: pass"})
        kernel.scratchpad(DELAYED.format("mutate_graph"))
        kernel.start_run("a")
        kernel.interrupt()
        outcome = kernel.finish(kernel.seq)
        self.assertEqual((outcome.done["interrupted"], outcome.printed, outcome.stale()), (True, "", ["a"]))
        self.assertEqual(kernel.run(a="1").status("a"), "success")

    def test_an_interrupt_before_the_first_line_of_a_scratchpad_call_is_not_lost(self):
        kernel = host.open({})
        kernel.scratchpad(DELAYED.format("_try_compiling_cell"))
        kernel.start_scratchpad("print('ran')\nwhile True: pass")
        kernel.interrupt()
        outcome = kernel.finish(kernel.seq)
        self.assertEqual((outcome.done["interrupted"], outcome.printed), (True, ""))

    def test_an_interrupt_before_a_cell_that_code_mode_runs_ends_the_cell_and_the_code(self):
        kernel = host.open({"a": "print('ran')\nwhile True: pass"})
        kernel.scratchpad(DELAYED.format("mutate_graph"))
        kernel.start_scratchpad(RUN_CELL)
        kernel.interrupt()
        outcome = kernel.finish(kernel.seq)
        self.assertEqual((outcome.done["interrupted"], outcome.printed), (True, ""))
        self.assertEqual(kernel.run(a="1").status("a"), "success")

    def test_an_interrupt_of_a_cell_that_code_mode_runs_ends_the_code_as_well(self):
        kernel = host.open({"a": "print('go')\nwhile True: pass"})
        seq = kernel.start_scratchpad(RUN_CELL)
        before = kernel.read_until(is_printed("go"))
        kernel.interrupt()
        outcome = kernel.finish(seq, before)
        self.assertEqual((outcome.done["interrupted"], outcome.status("a")), (True, "interrupted"))
        self.assertNotIn("went on", outcome.printed)

    def test_an_interrupt_ends_code_that_has_awaited_and_now_computes(self):
        kernel = host.open({})
        seq = kernel.start_scratchpad("import asyncio\nawait asyncio.sleep(0)\nprint('go')\nwhile True: pass")
        before = kernel.read_until(is_printed("go"))
        kernel.interrupt()
        self.assertTrue(kernel.finish(seq, before).done["interrupted"])

    def test_an_interrupt_ends_native_code_that_keeps_the_interpreters_lock(self):
        path = os.path.join(host.directory, "matching")
        kernel = host.open({"a": f"import re\nopen({path!r}, 'w').close()\nre.match('(a+)+$', 'a' * 60 + 'b')"})
        seq = kernel.start_run("a")
        wait_until(lambda: os.path.exists(path))
        kernel.interrupt()
        outcome = kernel.finish(seq)
        self.assertEqual((outcome.done["interrupted"], outcome.status("a")), (True, "interrupted"))

    def test_an_interrupt_ends_the_making_of_an_output(self):
        code = "class Slow:\n    def _repr_html_(self):\n        print('go')\n        while True: pass\nSlow()"
        _, outcome = self.interrupt(code)
        self.assertTrue(outcome.done["interrupted"])

    def test_an_interrupt_that_comes_after_the_end_of_its_command_is_dropped(self):
        kernel = host.open({"a": "1", "b": f"print('go'){UNTIL_SIGNAL}(21)\nprint('whole')"})
        kernel.run("a")
        for _ in range(3):
            for _ in range(20):
                kernel.interrupt()
            self.assertEqual(kernel.run("a").status("a"), "success")
        ended = kernel.seq
        seq = kernel.start_run("b")
        before = kernel.read_until(is_printed("go"))
        kernel.interrupt(ended)
        outcome = kernel.finish(seq, before)
        self.assertEqual((outcome.done["interrupted"], outcome.printed), (False, "go\nwhole\n"))

    def test_no_command_begins_while_a_signal_for_an_earlier_one_is_on_its_way(self):
        kernel = host.open({"a": "1", "b": "import subprocess\nsubprocess.run(['sleep', '0.01']).returncode"})
        kernel.run("a")
        kernel.announce_interrupt(kernel.seq)
        seq = kernel.start_run("b")
        self.assertEqual(select.select([kernel.frames.socket], [], [], 0.2)[0], [])  # its child would get the signal
        kernel.signal(signal.SIGINT)
        self.assertEqual(kernel.finish(seq).outputs["b"]["data"], "<pre class='text-xs'>0</pre>")

    def test_a_cell_can_interrupt_itself(self):
        kernel = host.open({"a": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)", "b": "1"})
        outcome = kernel.run("a")
        self.assertEqual((outcome.done["interrupted"], outcome.status("a")), (True, "interrupted"))
        self.assertEqual(kernel.run("b").status("b"), "success")

    def test_unannounced_signals_do_nothing_to_an_idle_kernel(self):
        kernel = host.open({"a": "1"})
        for _ in range(20):
            os.kill(kernel.pid, signal.SIGINT)
        self.assertIn(kernel.run("a").status("a"), ("success", "interrupted"))  # the last may arrive during the run
        self.assertEqual(kernel.run("a").status("a"), "success")

    def test_an_interrupt_before_the_kernel_listens_is_ignored(self):
        for _ in range(3):
            kernel = host.fork()
            kernel.signal(signal.SIGINT)
            self.assertEqual(kernel.open({"a": "1"}).stale(), ["a"])


class Console(unittest.TestCase):
    def test_input_and_a_debugger_fail_at_once(self):
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

    def test_output_of_subprocesses_arrives_whole_also_when_reads_split_a_character(self):
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
            # The text of one print may come in several messages.
            printed = [(n, op["console"]["data"]) for n, op in enumerate(ops) if isinstance(op["console"], dict)]
            idle = next(n for n, op in enumerate(ops) if op["status"] == "idle")
            self.assertEqual("".join(text for n, text in printed if n < idle), f"line {i}\n")

    def test_a_cell_is_reported_as_running_before_its_code_runs(self):
        kernel = host.open({"a": "x = 1", "b": "print(x)\nwhile True: pass"})
        seq = kernel.start_run("b")
        before = kernel.read_until(lambda m: m["op"] == "cell-op" and m["cell_id"] == "b" and m["status"] == "running")
        self.assertIn(("a", "idle"), [(m["cell_id"], m["status"]) for m in before if m["op"] == "cell-op"])
        kernel.read_until(is_printed("1"))
        kernel.interrupt()
        kernel.finish(seq)


if __name__ == "__main__":
    unittest.main()
