# tier: whole, because it makes control groups
"""Memory that control groups count: the memory in use by all processes of a kernel. Skipped where
this user can divide no group.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from support import HOST, Host, KernelLost, wait_until

from forking import cgroups  # isort: skip

# The kernel gives no process this number.
NO_PID = 1 << 30
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

    def test_the_use_of_all_processes_of_a_kernel_is_limited_together(self):
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

    def test_processes_with_one_share_are_limited_together_and_leave_no_group(self):
        first, second = (
            self.host.open({"a": "own = b'x' * (300 << 20)"}, memory=512 << 20, share="a") for _ in range(2)
        )
        self.assertEqual(len(self.groups()), 1)
        other = self.host.open({"a": "own = b'x' * (300 << 20)"}, memory=512 << 20, share="b")
        self.assertEqual(first.run("a").status("a"), "success")
        self.assertEqual(other.run("a").status("a"), "success")
        second.start_run("a")
        exited = self.host.wait_for("exited")
        self.assertIn(exited["id"], (first.id, second.id))
        self.assertEqual((exited["signal"], exited["out_of_memory"]), (9, True))
        self.assertEqual(len(self.groups()), 2)
        for kernel in (first, second, other):
            kernel.signal(signal.SIGKILL)
        wait_until(lambda: not self.groups(), "the end of the groups")

    def test_a_kernel_that_is_killed_below_its_limit_is_not_out_of_memory(self):
        kernel = self.host.open({}, memory=512 << 20)
        exited = kernel.end()
        self.assertEqual((exited["signal"], exited["out_of_memory"]), (9, False))

    def test_control_groups_are_removed_with_their_kernels(self):
        kernels = [self.host.open({}, memory=512 << 20, confine=confine) for confine in (None, {})]
        first, second = sorted(self.groups(), key=lambda name: int(name.split("-")[2]))[:2]
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

    def test_a_new_control_group_of_a_host_in_another_pid_namespace_stays(self):
        base = cgroups.find().base
        group = os.path.join(base, f"{cgroups.PREFIX}{NO_PID}-0-{cgroups.pid_namespace() + 1}")
        os.mkdir(group)
        self.addCleanup(os.rmdir, group)
        cgroups.find()
        self.assertTrue(os.path.exists(group))


# Runs as root in a mount namespace of its own, in a group of version 2 that is delegated as systemd does it.
DELEGATED = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from forking import cgroups
root = sys.argv[2]
controllers = cgroups.words(root, "cgroup.controllers")
cgroups.CONTROLLER = "memory" if "memory" in controllers else next(iter(controllers), "none")
before = cgroups.words(root, "cgroup.subtree_control")
if not cgroups.divide(root):
    sys.exit("no controller")
own = os.path.join(root, f"troupe-test-{os.getpid()}")
os.mkdir(own)
offered = lambda: [path for path, version in cgroups.candidates() if version is cgroups.VERSION_2]
other = subprocess.Popen(["sleep", "60"])
try:
    for pid in (os.getpid(), other.pid):
        cgroups.write(os.path.join(own, "cgroup.procs"), str(pid))
    assert not offered(), "it is not delegated"
    os.setxattr(own, "trusted.delegate", b"1")
    assert not cgroups.divide(own), "a group with processes was divided"
    for _ in range(2):  # as by the first kernel host, and by the next one in the group that this has made
        assert own in offered(), offered()
        assert cgroups.words(own, "cgroup.procs") == []
        assert cgroups.words(own, "cgroup.subtree_control") == [cgroups.CONTROLLER]
        moved = cgroups.words(os.path.join(own, cgroups.LEAF), "cgroup.procs")
        assert sorted(moved) == sorted([str(os.getpid()), str(other.pid)]), moved
    # a controller and a file that are here stand for those of processor time, which this machine may lack
    cgroups.PROCESSORS, cgroups.WEIGHT_FILE = "none", "cgroup.max.depth"
    assert not cgroups.favour_server(own), "there are no weights without the controller"
    cgroups.PROCESSORS = cgroups.CONTROLLER
    assert cgroups.favour_server(own)
    assert cgroups.words(os.path.join(own, cgroups.LEAF), cgroups.WEIGHT_FILE) == ["10000"]
    cgroups.WEIGHT_FILE = "missing"
    assert not cgroups.favour_server(own), "the server had no more than a kernel"
    assert cgroups.words(own, "cgroup.subtree_control") == [], "kernels would have weights against the server"
finally:
    other.kill()
    other.wait()
    cgroups.write(os.path.join(root, "cgroup.procs"), str(os.getpid()))
    for path in (os.path.join(own, cgroups.LEAF), own):
        if os.path.exists(path):
            os.rmdir(path)
    if cgroups.CONTROLLER not in before:
        cgroups.write(os.path.join(root, "cgroup.subtree_control"), f"-{cgroups.CONTROLLER}")
"""


class DelegatedGroup(unittest.TestCase):
    def test_processes_leave_a_delegated_group_that_is_to_be_divided(self):
        with tempfile.TemporaryDirectory() as folder:
            script = f'mount -t cgroup2 none {folder} || exit 77; exec "$0" -c "$1" {HOST} {folder}'
            command = ["unshare", "--mount", "sh", "-c", script, sys.executable, DELEGATED]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            if done.returncode == 77 or re.search("no controller|unshare failed|Operation not permitted", done.stderr):
                self.skipTest("no control groups of version 2 here that root may make")
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
