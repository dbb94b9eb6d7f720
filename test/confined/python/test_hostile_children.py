# tier: whole, because it attacks the confinement of kernels
"""Attacks of notebook code on the processes above it where no namespaces separate them: these go on serving others."""

import os
import signal
import subprocess
import sys
import unittest

from support import HOST, Host, find_marked, is_alive, wait_until

import processes  # isort: skip

# no layer at all: an attack that fails here fails everywhere
BARE = {"TROUPE_CONFINE_WITHOUT": "namespaces,landlock,seccomp"}
CALLS = """
import ctypes, os, signal, time
libc = ctypes.CDLL(None, use_errno=True)
"""
TRACED = CALLS + "libc.ptrace(0, 0, 0, 0)\nos.kill(os.getpid(), signal.SIGSTOP)"
SIBLINGS = (
    CALLS
    + """
CLONE_PARENT = 0x8000
for _ in range(300):
    if libc.syscall(56 if os.uname().machine == "x86_64" else 220, CLONE_PARENT | 17, 0, 0, 0, 0) == 0: os._exit(7)
"""
)
# orphans that are not inherited by the kernel but by the zygote, as many as it can make
ORPHANS = (
    CALLS
    + """
libc.prctl(36, 0, 0, 0, 0)
end = time.monotonic() + 1
print("go")
while time.monotonic() < end:
    if os.fork() == 0:
        for _ in range(20):
            if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
"""
)
LEFT_BEHIND = """
import os, time
for _ in range(600):
    if os.fork() == 0:
        try: os.setsid(); time.sleep(600)
        finally: os._exit(0)
os._exit(3)
"""
RENAMED = """
import ctypes, os, time
for name in (b"a) R 1 1", b"a\\n) Z 1\\n", b"\\xff\\xfe", b""):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
        os.execvp("sh", [name or b" ", "-c", "exec sleep {mark}"])
"""


class HostileChildren(unittest.TestCase):
    def start(self, **env):
        host = Host(env={**BARE, **env})
        self.addCleanup(host.stop)
        return host

    def assert_serves(self, host):
        self.assertEqual(host.open({"a": "1"}).run("a").status("a"), "success")

    def test_a_kernel_that_makes_the_kernel_host_trace_it_ends_and_the_others_go_on(self):
        for confine in (None, {}):
            host = self.start()
            bystander = host.open({"a": "1"})
            kernel = host.open({"a": TRACED}, confine=confine)
            kernel.start_run("a")
            self.assertEqual(host.wait_for("exited", kernel.id)["signal"], signal.SIGKILL)
            self.assertEqual(bystander.run("a").status("a"), "success")
            self.assert_serves(host)

    def test_a_kernel_that_makes_its_init_trace_it_ends_alone(self):
        host = self.start(TROUPE_CONFINE_WITHOUT="landlock,seccomp")
        bystander = host.open({"a": "1"}, confine={})
        kernel = host.open({"a": TRACED}, confine={})
        kernel.start_run("a")
        self.assertEqual(host.wait_for("exited", kernel.id)["signal"], signal.SIGKILL)
        self.assertEqual(bystander.run("a").status("a"), "success")

    def test_a_status_that_is_not_an_end_is_not_taken_for_one(self):
        until_closed, closing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(closing)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.read(until_closed, 1)  # an end before the parent's next wait would hide that the child has continued
            os._exit(4)
        os.close(until_closed)
        self.assertIsNone(processes.exit_code(os.waitpid(pid, os.WUNTRACED)[1]))
        os.kill(pid, signal.SIGCONT)
        self.assertIsNone(processes.exit_code(os.waitpid(pid, os.WCONTINUED)[1]))
        os.close(closing)
        self.assertEqual(processes.exit_code(os.waitpid(pid, 0)[1]), 4)

    def test_children_that_a_kernel_makes_in_its_parents_name_are_reaped_and_not_reported(self):
        host = self.start()
        kernel = host.open({"a": SIBLINGS, "b": "1"})
        self.assertEqual(kernel.run("a").status("a"), "success")
        self.assert_serves(host)
        self.assertEqual(kernel.run("b").status("b"), "success")
        self.assertEqual([line for line in host.lines if line["op"] == "exited"], [])

    def test_seccomp_refuses_children_in_the_parents_name(self):
        host = self.start(TROUPE_CONFINE_WITHOUT="namespaces")
        code = CALLS + "print(libc.syscall(56 if os.uname().machine == 'x86_64' else 220, 0x8000 | 17, 0, 0, 0, 0))"
        self.assertEqual(host.open({"a": code}, confine={}).run("a").printed, "-1\n")

    def test_orphans_that_end_without_pause_do_not_delay_other_kernels(self):
        host = self.start()
        kernel = host.open({"a": ORPHANS})
        seq = kernel.start_run("a")
        before = kernel.read_until(lambda message: message["op"] == "cell-op" and message["console"])
        self.assert_serves(host)
        self.assertEqual(kernel.finish(seq, before).status("a"), "success")

    def test_hundreds_of_processes_left_by_a_kernel_are_killed_while_others_are_served(self):
        host = self.start()
        (zygote,) = host.children()
        kernel = host.open({"a": LEFT_BEHIND})
        kernel.start_run("a")
        self.assertEqual(host.wait_for("exited", kernel.id)["code"], 3)
        self.assert_serves(host)

        def children():
            with open(f"/proc/{zygote}/task/{zygote}/children", encoding="ascii") as file:
                return file.read().split()

        wait_until(lambda: len(children()) == 1, "the end of what was left behind")

    def test_no_name_of_a_process_hides_it_from_the_sweep(self):
        mark = f"95{os.getpid():07d}"
        host = self.start()
        kernel = host.open({"a": RENAMED.format(mark=mark), "b": "import os as o\no._exit(3)"})
        kernel.run("a")
        wait_until(lambda: len(find_marked(mark)) == 4, "the renamed processes")
        kernel.start_run("b")
        wait_until(lambda: not find_marked(mark), "their end")

    def test_the_parent_of_a_process_is_found_for_every_process_name(self):
        pid = os.fork()
        if pid == 0:
            import ctypes

            ctypes.CDLL(None).prctl(15, b"a) R 1\n2 3", 0, 0, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            os._exit(0)
        os.waitpid(pid, os.WUNTRACED)
        self.assertEqual(processes._parent(pid), os.getpid())
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def test_the_guardian_takes_a_second_request_to_end_as_well(self):
        host = self.start()
        kernel = host.open({})
        for _ in range(2):
            host.process.terminate()
        self.assertEqual(host.process.wait(10), 0)
        wait_until(lambda: not is_alive(kernel.pid), "the end of the kernel")

    @unittest.skipUnless(os.geteuid() == 0, "only root has children of another user")
    def test_a_child_of_another_user_is_not_waited_for(self):
        code = f"""
import encodings.ascii, os, sys  # the other user cannot load what lies in root's home
sys.path.insert(0, {HOST!r})
import processes
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    os.setresuid(65533, 65533, 65533)
    os.closerange(0, 3)
    os.write(write, b"x")
    import time; time.sleep(600)
os.read(read, 1)
os.setresuid(65534, 65534, 65534)
print(pid, flush=True)
print(processes.kill_tree(pid))
processes.kill_children()
"""
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=False)
        pid, *answer = run.stdout.split()
        os.kill(int(pid), signal.SIGKILL)
        self.assertEqual((answer, run.stderr), (["False"], ""))


if __name__ == "__main__":
    unittest.main()
