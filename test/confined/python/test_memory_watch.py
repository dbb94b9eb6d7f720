# tier: whole, because it fills memory
"""Memory where no control group counts it: the watch ends kernels that use more than allowed, and
leaves others alone.
"""

import os
import signal
import time
import unittest

from support import Host, wait_until
from test_confinement import USED, USES, tell

from confinement.detect import detect  # isort: skip

LIMIT = 512 << 20
# the longest time from exceeding the limit to the report of the end: one pause, one look, and the
# delay of a busy machine
BOUND_S = 5
GROWTHS = {
    "a shared map": "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor at in range(0, 1 << 30, 4096): m[at] = 1",
    "shared maps of its children": (
        "import mmap, os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        m = mmap.mmap(-1, 200 << 20)\n"
        "        for at in range(0, 200 << 20, 4096): m[at] = 1\n        time.sleep(600)\ntime.sleep(600)"
    ),
    "memory of its children": (
        "import os, time\nfor _ in range(4):\n    if os.fork() == 0: own = b'x' * (200 << 20); time.sleep(600)\n"
        "time.sleep(600)"
    ),
    "a child of a thread": (
        "import threading, subprocess, sys, time\n"
        "code = 'import mmap, time\\nm = mmap.mmap(-1, 1 << 30)\\nfor at in range(0, 1 << 30, 4096): m[at] = 1\\n'\n"
        "code += 'time.sleep(600)'\n"
        "threading.Thread(target=subprocess.run, args=([sys.executable, '-c', code],), daemon=True).start()\n"
        "time.sleep(600)"
    ),
}
KEPT = {
    "files in /tmp and /dev/shm": (
        "import time\nfor name in ('/tmp/a', '/dev/shm/a'):\n    with open(name, 'wb') as file:\n"
        "        for _ in range(250): file.write(bytes(1 << 20))\nown = b'x' * (200 << 20)\ntime.sleep(600)"
    ),
}
HELD = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
held = []
try: os.close(os.memfd_create("x")); held.append("memfd")
except OSError: pass
if libc.shmget(0, 4096, 0o1600) >= 0: held.append("shm")
print("ANSWER" + json.dumps(held))
"""


class MemoryWatched(unittest.TestCase):
    def start(self, without="cgroups"):
        host = Host(env={"TROUPE_CONFINE_WITHOUT": without})
        self.addCleanup(host.stop)
        return host

    def assert_ends(self, host, code, **order):
        kernel = host.open({"a": code}, memory=LIMIT, **order)
        bystander = host.open({"a": "1"}, memory=LIMIT, **order)
        started_at = time.monotonic()
        kernel.start_run("a")
        exited = host.wait_for("exited", kernel.id)
        self.assertEqual((exited["signal"], exited["out_of_memory"]), (signal.SIGKILL, True))
        self.assertLess(time.monotonic() - started_at, 10 + BOUND_S)
        self.assertEqual(bystander.run("a").status("a"), "success")

    def test_a_kernel_that_uses_more_than_its_limit_ends_and_the_others_go_on(self):
        for without, confine in (("cgroups", {}), ("cgroups,namespaces", {}), ("cgroups", None)):
            host = self.start(without)
            for what, code in GROWTHS.items():
                with self.subTest(what=what, without=without, confine=confine):
                    self.assert_ends(host, code, confine=confine)

    def test_processes_with_one_share_are_counted_together(self):
        host, code = self.start(), "import time\nown = b'x' * (200 << 20)\ntime.sleep(600)"
        order = {"memory": LIMIT, "confine": None}
        alone = host.open({"a": code}, share="b", **order)
        alone.start_run("a")
        ended = host.open({"a": "own = b'x' * (300 << 20)"}, share="a", **order)
        self.assertEqual(ended.run("a").status("a"), "success")
        ended.end()
        together = [host.open({"a": code}, share="a", **order) for _ in range(3)]
        for kernel in together:
            kernel.start_run("a")
        for kernel in together:
            exited = host.wait_for("exited", kernel.id)
            self.assertEqual((exited["signal"], exited["out_of_memory"]), (signal.SIGKILL, True))
        self.assertEqual([line for line in host.lines if line["op"] == "exited"], [], "what is alone goes on")

    @unittest.skipUnless(detect().namespaces, "no namespaces here: no /tmp of its own")
    def test_files_of_a_session_in_tmp_and_shm_count(self):
        host = self.start()
        for what, code in KEPT.items():
            with self.subTest(what=what):
                self.assert_ends(host, code, confine={})

    @unittest.skipUnless(detect().namespaces, "no namespaces here: no /tmp of its own")
    def test_the_memory_of_an_undumpable_kernel_is_counted_too(self):
        hidden = "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
        self.assert_ends(self.start(), hidden + GROWTHS["a shared map"], confine={})

    def test_memory_that_is_shared_counts_once(self):
        code = (
            "import os, time, multiprocessing.shared_memory as s\nown = b'x' * (200 << 20)\n"
            "m = s.SharedMemory(create=True, size=100 << 20)\nm.buf[:] = bytes(100 << 20)\nborn = []\n"
            "for _ in range(8):\n    pid = os.fork()\n    if pid == 0:\n        sum(m.buf[::4096]); time.sleep(600)\n"
            "    born.append(pid)\ntime.sleep(3)\nfor pid in born: os.kill(pid, 9); os.waitpid(pid, 0)\nm.unlink()"
        )
        for confine in ({}, None):
            kernel = self.start().open({"a": code}, memory=640 << 20, confine=confine)
            self.assertEqual(kernel.run("a").status("a"), "success")

    def test_a_memory_watch_that_is_killed_is_replaced_and_watches_every_kernel(self):
        host = self.start()
        kernel = host.open({"a": GROWTHS["a shared map"]}, memory=LIMIT, confine=None)
        (zygote,) = host.children()
        with open(f"/proc/{zygote}/task/{zygote}/children", encoding="ascii") as file:
            (watch,) = [int(pid) for pid in file.read().split() if int(pid) != kernel.pid]
        os.kill(watch, signal.SIGKILL)
        wait_until(lambda: not os.path.exists(f"/proc/{watch}"), "its end")
        kernel.start_run("a")
        self.assertTrue(host.wait_for("exited", kernel.id)["out_of_memory"])

    def test_idle_kernels_are_not_measured(self):
        host = self.start()
        kernels = [host.open({"a": "1"}, memory=4 << 30, confine=None) for _ in range(3)]
        (zygote,) = host.children()
        with open(f"/proc/{zygote}/task/{zygote}/children", encoding="ascii") as file:
            (watch,) = [int(pid) for pid in file.read().split() if int(pid) not in {k.pid for k in kernels}]

        def processor_time():
            with open(f"/proc/{watch}/schedstat", encoding="ascii") as file:
                return int(file.read().split()[0]) / 1e9

        before = processor_time()
        time.sleep(3)  # a rate can only be measured over a time
        self.assertLess((processor_time() - before) / 3, 0.005)

    def test_memory_that_nothing_counts_cannot_be_allocated_and_libraries_work_without(self):
        if not detect().seccomp:
            self.skipTest("no seccomp here")
        kernel = self.start().open({"uses": USES}, memory=2 << 30, confine={})
        self.assertEqual(tell(kernel.scratchpad(HELD)), [])
        self.assertEqual(tell(kernel.run("uses")), USED)
        if "memory by cgroup" in (host := self.start("")).hello["confinement"]:
            self.assertEqual(tell(host.open({}, memory=2 << 30, confine={}).scratchpad(HELD)), ["memfd", "shm"])

    def test_one_large_request_is_still_an_error_of_the_cell(self):
        kernel = self.start().open({"a": "b = bytearray(2 << 30)", "c": "1"}, memory=1 << 30, confine={})
        failed = kernel.run("a")
        self.assertEqual((failed.status("a"), failed.error_of("a")["exception_type"]), ("exception", "MemoryError"))
        self.assertEqual(kernel.run("c").status("c"), "success")


if __name__ == "__main__":
    unittest.main()
