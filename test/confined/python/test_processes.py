# tier: whole, because it forks many generations of kernels
"""Tests the environment and the end of kernel processes, and that no process outlives its kernel.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from support import HOST, Host, KernelLost, find_marked, is_alive, wait_until

from forking import child  # isort: skip

ESCAPES = """
import os, subprocess
plain = subprocess.Popen(["sleep", "{mark}"])
session = subprocess.Popen(["sleep", "{mark}"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execvp("sleep", ["sleep", "{mark}"])
    os._exit(0)
pid, status = os.wait()
"""
marks = 0


def new_mark():
    global marks
    marks += 1
    return f"98{os.getpid():07d}{marks:02d}"


class Surroundings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host(env={"SECRET": "hunter2"})
        cls.addClassCleanup(cls.host.stop)

    def test_the_environment_is_exactly_that_of_the_order(self):
        kernel = self.host.fork(env={"TZ": "Asia/Tokyo", "MINE": "ä"})
        environment = kernel.evaluate("dict(__import__('os').environ)")
        expected = {
            "PATH": os.environ["PATH"],
            "HOME": self.host.work,
            "LANG": "C.UTF-8",
            "TZ": "Asia/Tokyo",
            "MINE": "ä",
        }
        self.assertEqual({name: environment[name] for name in expected}, expected)
        self.assertEqual([name for name in environment if name not in expected and not name.startswith("MPL")], [])
        self.assertEqual(kernel.evaluate("__import__('time').tzname[0]"), "JST")

    def test_a_kernel_leads_its_own_session_and_group_in_its_own_directory(self):
        kernel = self.host.fork()
        found = kernel.evaluate(
            "(lambda o: [o.getpid(), o.getsid(0), o.getpgrp(), o.getcwd(), o.umask(0o077)])(__import__('os'))"
        )
        self.assertEqual(found, [kernel.pid, kernel.pid, kernel.pid, self.host.work, 0o077])

    def test_a_kernel_has_no_file_of_the_zygote_open(self):
        kernel = self.host.open({})
        links = {fd: os.readlink(f"/proc/{kernel.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{kernel.pid}/fd")}
        self.assertEqual({links[fd] for fd in "012"}, {"/dev/null"})
        others = sorted({link.split(":")[0] for fd, link in links.items() if fd not in "012"})
        self.assertEqual(others, ["anon_inode", "pipe", "socket"])

    def test_the_zygote_keeps_nothing_open_for_processes_that_have_ended(self):
        (zygote,) = self.host.children()

        def is_at_rest():
            before = os.listdir(f"/proc/{zygote}/fd")
            self.host.open({}).end()
            return len(os.listdir(f"/proc/{zygote}/fd")) <= len(before)

        wait_until(is_at_rest, "a kernel that leaves nothing open")

    def test_the_report_of_an_end_has_the_text_printed_before_it_began_and_nothing_later(self):
        nowhere = {"path": "/nowhere/" + "s" * 90, "token": "t"}
        for confine in (None, {}):
            self.host.tell(op="fork", id="d", connection=nowhere, confine=confine)
            words = self.host.wait_for("exited", "d")["words"].splitlines()
            self.assertEqual(words[0], "Traceback (most recent call last):")
            self.assertRegex(words[-1], r"^FileNotFoundError: \[Errno 2\] [\w ]+$")
            kernel = self.host.open({"a": "import os\nos.write(2, b'late')\nos._exit(3)"}, confine=confine)
            kernel.start_run("a")
            self.assertEqual(self.host.wait_for("exited", kernel.id)["words"], "")

    def test_the_report_of_an_end_has_the_end_of_a_long_text(self):
        with open(words := child.open_words(), "wb", buffering=0, closefd=False) as file:
            file.write(b"first " + b"x" * 9000 + b" last\n")
        told = child.Child("k", None, None, words).read_words()
        os.close(words)
        self.assertEqual((len(told), told[-5:]), (4095, " last"))

    def test_notebooks_import_their_own_files_and_not_the_hosts(self):
        for name in ("console", "bridge", "frames"):
            with open(os.path.join(self.host.work, f"{name}.py"), "w", encoding="utf-8") as file:
                file.write("mine = True\n")
        kernel = self.host.open({"a": "import console, bridge, frames\nprint(console.mine, bridge.mine, frames.mine)"})
        self.assertEqual(kernel.run("a").printed, "True True True\n")
        self.assertEqual(kernel.run(b="import outbox").error_of("b")["exception_type"], "ModuleNotFoundError")
        self.assertNotIn(HOST, kernel.evaluate("__import__('sys').path"))

    def test_limits_are_set_and_too_much_memory_is_an_error_of_the_cell(self):
        kernel = self.host.open({"a": "b = bytearray(2 << 30)", "c": "1"}, limits={"DATA": 1 << 30, "NOFILE": 512})
        failed = kernel.run("a")
        self.assertEqual((failed.status("a"), failed.error_of("a")["exception_type"]), ("exception", "MemoryError"))
        self.assertEqual(kernel.run("c").status("c"), "success")
        read = "(lambda r: [r.getrlimit(r.RLIMIT_NOFILE), r.getrlimit(r.RLIMIT_CORE)])(__import__('resource'))"
        self.assertEqual(kernel.evaluate(read), [[512, 512], [0, 0]])

    def test_too_much_memory_in_one_request_is_an_error_of_the_cell_with_and_without_control_groups(self):
        for without in ("", "cgroups"):
            host = Host(env={"TROUPE_CONFINE_WITHOUT": without})
            self.addCleanup(host.stop)
            kernel = host.open({"a": "b = bytearray(3 << 30)", "c": "1"}, memory=1 << 30)
            failed = kernel.run("a")
            self.assertEqual((failed.status("a"), failed.error_of("a")["exception_type"]), ("exception", "MemoryError"))
            self.assertEqual(kernel.run("c").status("c"), "success")

    def test_a_kernel_whose_directory_is_missing_ends_and_the_report_says_so(self):
        with self.assertRaises(KernelLost):
            self.host.fork(cwd=os.path.join(self.host.directory, "nowhere"))
        exited = self.host.wait_for("exited")
        self.assertEqual((exited["code"], exited["signal"]), (70, None))


class Endings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host()
        cls.addClassCleanup(cls.host.stop)

    def test_the_report_says_how_a_kernel_died(self):
        ends = {
            "import os; os._exit(3)": (3, None),
            "import os; os.kill(os.getpid(), 9)": (0, 9),
            "import ctypes; ctypes.string_at(0)": (0, 11),
        }
        for code, expected in ends.items():
            kernel = self.host.open({"a": code})
            with self.assertRaises(KernelLost):
                kernel.run("a")
            exited = self.host.wait_for("exited", kernel.id)
            self.assertEqual((exited["code"], exited["signal"]), expected)

    def test_a_kernel_that_ignores_interrupts_dies_of_sigterm_and_sigkill(self):
        code = "while True:\n    try:\n        sum(range(10**11))\n    except BaseException: pass"
        for number in (signal.SIGTERM, signal.SIGKILL):
            kernel = self.host.open({"a": code})
            kernel.start_run("a")
            kernel.read_until(lambda message: message["op"] == "cell-op" and message["status"] == "running")
            kernel.signal(signal.SIGINT)
            kernel.signal(number)
            self.assertEqual(self.host.wait_for("exited", kernel.id)["signal"], number)

    def test_a_kernel_and_its_group_end_with_the_connection_to_the_server(self):
        kernel = self.host.open({"a": ESCAPES.format(mark=(mark := new_mark()))})
        kernel.run("a")
        wait_until(lambda: len(find_marked(mark)) == 3, "the children of the cells")
        kernel.frames.socket.shutdown(2)
        self.assertEqual(self.host.wait_for("exited", kernel.id)["signal"], 9)
        wait_until(lambda: not find_marked(mark), "the end of what the cells started", 2)

    def test_processes_left_by_a_dead_kernel_are_killed(self):
        for end in ("kill", "exit"):
            kernel = self.host.open({"a": ESCAPES.format(mark=(mark := new_mark())), "b": "import os as o\no._exit(3)"})
            kernel.run("a")
            wait_until(lambda: len(find_marked(mark)) == 3, "the children of the cells")
            if end == "kill":
                kernel.signal(signal.SIGKILL)
            else:
                with self.assertRaises(KernelLost):
                    kernel.run("b")
            self.host.wait_for("exited", kernel.id)
            wait_until(lambda: not find_marked(mark), "the end of what the cells started", 2)

    def test_a_process_that_a_cell_forks_dies_of_sigterm_also_when_it_blocks(self):
        kernel = self.host.open(
            {
                "a": """
import multiprocessing, os, signal, time, warnings
warnings.simplefilter("ignore")  # of Python 3.12 and later, about threads
semaphore = multiprocessing.get_context("fork").Semaphore(0)
if (pid := os.fork()) == 0:
    semaphore.acquire()
    os._exit(1)
os.kill(pid, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
            }
        )
        self.assertEqual(kernel.run("a").printed, "-15\n")

    def test_a_killed_kernel_leaves_the_others_alone(self):
        kernels = [self.host.open({"a": "1"}) for _ in range(3)]
        kernels[1].end()
        self.assertEqual([kernel.run("a").status("a") for kernel in (kernels[0], kernels[2])], ["success", "success"])


class Deaths(unittest.TestCase):
    """Whichever process dies, no kernel process remains, and no process that a cell started."""

    def start(self, **options):
        host = Host(**options)
        self.addCleanup(host.stop)
        kernels = []
        mark = new_mark()
        for _ in range(3):
            kernels.append(host.open({"a": ESCAPES.format(mark=mark), "busy": "print('go')\nsum(range(10**12))"}))
            kernels[-1].run("a")
        kernels[0].start_run("busy")  # holds the interpreter's lock: no thread of it can notice anything
        kernels[0].read_until(lambda message: message["op"] == "cell-op" and message["status"] == "running")
        wait_until(lambda: len(find_marked(mark)) == 9, "the children of the cells")
        return host, [kernel.pid for kernel in kernels], mark

    def assert_all_end(self, pids, mark):
        wait_until(lambda: not any(map(is_alive, pids)), "the end of all kernels", 2)
        wait_until(lambda: not find_marked(mark), "the end of what their cells started", 2)

    def test_everything_ends_when_the_zygote_is_killed(self):
        host, pids, mark = self.start()
        (zygote,) = host.children()
        os.kill(zygote, signal.SIGKILL)
        self.assert_all_end(pids, mark)
        self.assertEqual(host.process.wait(2), 128 + 9)

    def test_everything_ends_when_the_guardian_is_killed(self):
        host, pids, mark = self.start()
        zygote = host.children()
        host.process.kill()
        self.assert_all_end(pids + zygote, mark)

    def test_everything_ends_when_the_guardian_is_asked_to_end(self):
        host, pids, mark = self.start()
        zygote = host.children()
        host.process.terminate()
        self.assert_all_end(pids + zygote, mark)
        self.assertEqual(host.process.wait(2), 0)

    def test_everything_ends_when_the_zygotes_stdin_ends(self):
        host, pids, mark = self.start()
        zygote = host.children()
        host.process.stdin.close()
        self.assert_all_end(pids + zygote, mark)
        self.assertEqual(host.process.wait(2), 0)

    def test_everything_ends_when_the_server_is_killed(self):
        with tempfile.TemporaryDirectory() as directory:
            mark = new_mark()
            code = f"""
import json, os, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from support import Host
host = Host()
kernels = [host.open({{"a": {ESCAPES.format(mark=mark)!r}}}) for _ in range(2)]
for kernel in kernels: kernel.run("a")
print(json.dumps([host.directory, host.process.pid, *host.children(), *(kernel.pid for kernel in kernels)]), flush=True)
os.kill(os.getpid(), 9)
"""
            server = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, cwd=directory, check=False
            )
            _, *pids = json.loads(server.stdout)
            self.assertEqual(len(pids), 4)
            self.assert_all_end(pids, mark)


if __name__ == "__main__":
    unittest.main()
