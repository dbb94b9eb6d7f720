"""Memory that control groups count: of all processes of a kernel, in use. Skipped where no group is ours to divide."""

import os
import signal
import unittest

from support import Host, KernelLost, wait_until

import cgroups  # isort: skip

GREEDY = "kept = []\nwhile True: kept.append(b'x' * (32 << 20))"


@unittest.skipIf(cgroups.find() is None, "no control group is ours to divide")
class ControlGroups(unittest.TestCase):
    def setUp(self):
        self.host = Host()
        self.addCleanup(self.host.stop)

    def groups(self):
        return [name for name in os.listdir(cgroups.find().base) if name.startswith(f"troupe-{self.zygote()}-")]

    def zygote(self):
        return self.host.children()[0]

    def test_what_all_processes_of_a_kernel_use_is_limited_together(self):
        code = (
            "import os, time\nfor _ in range(8):\n    if os.fork() == 0: own = b'x' * (96 << 20); time.sleep(60)\n"
            "while True: os.waitpid(-1, 0); break"
        )
        for confine in (None, {}):
            kernel = self.host.open({"children": code, "itself": GREEDY}, memory=512 << 20, confine=confine)
            self.assertEqual(kernel.run("children").status("children"), "success")  # one of them was killed
            with self.assertRaises(KernelLost):
                kernel.run("itself")
            exited = self.host.wait_for("exited", kernel.id)
            self.assertEqual((exited["signal"], exited["out_of_memory"]), (9, True))

    def test_a_kernel_that_is_killed_below_its_limit_is_not_out_of_memory(self):
        kernel = self.host.open({}, memory=512 << 20)
        exited = kernel.end()
        self.assertEqual((exited["signal"], exited["out_of_memory"]), (9, False))

    def test_control_groups_are_removed_with_their_kernels(self):
        kernels = [self.host.open({}, memory=512 << 20, confine=confine) for confine in (None, {})]
        first, second = sorted(self.groups(), key=lambda name: int(name.rpartition("-")[2]))[:2]
        kernels[0].end()
        wait_until(lambda: first not in self.groups(), "the end of one group")
        self.assertIn(second, self.groups())
        zygote = self.zygote()
        self.host.stop()
        left = [name for name in os.listdir(cgroups.find().base) if name.startswith(f"troupe-{zygote}-")]
        self.assertEqual(left, [])

    def test_control_groups_of_a_killed_host_are_removed_by_the_next(self):
        self.host.open({}, memory=512 << 20)
        zygote = self.zygote()
        os.kill(zygote, signal.SIGKILL)
        self.host.process.wait()
        cgroups.find()
        self.assertEqual([name for name in os.listdir(cgroups.find().base) if f"-{zygote}-" in name], [])


if __name__ == "__main__":
    unittest.main()
