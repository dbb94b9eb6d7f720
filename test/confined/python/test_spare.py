"""The init that waits for the next kernel."""

import os
import signal
import unittest

from support import Host, wait_until

from confinement import detect

POLICY = {"hidden": [], "processes": 64}
LINKS = """
import os
for name in os.listdir("/proc/self/fd"):
    try: print(os.readlink(f"/proc/self/fd/{name}"))
    except FileNotFoundError: pass
"""


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def sockets_of(kernel):
    """Returns the number of sockets that the kernel has."""
    return kernel.scratchpad(LINKS).printed.count("socket:")


@unittest.skipUnless(detect.detect(None).namespaces, "this machine has no namespaces for its users")
class SpareTest(unittest.TestCase):
    def setUp(self):
        self.host = Host()
        self.addCleanup(self.host.stop)
        (self.zygote,) = self.host.children()
        self.first = self.host.open({}, confine=POLICY)  # when there was no spare yet
        self.used = {self.first.pid}

    def waiting(self):
        """Returns the pid of the spare, once there is one."""
        wait_until(lambda: len(self.unused()) == 1, "a spare")
        return self.unused()[0]

    def unused(self):
        return [pid for pid in children(self.zygote) if pid not in self.used]

    def open(self, **order):
        kernel = self.host.open({"a": "1 + 1"}, **order)
        self.used.add(kernel.pid)
        return kernel

    def test_the_next_kernel_of_the_same_policy_gets_the_spare_and_another_spare_is_made(self):
        spare = self.waiting()
        kernel = self.open(confine=POLICY)
        self.assertEqual(kernel.pid, spare)
        self.assertEqual(kernel.run("a").status("a"), "success")
        self.assertNotEqual(self.waiting(), spare)
        self.assertEqual((kernel.end()["signal"]), 9)

    def test_a_kernel_of_another_policy_does_not_get_the_spare(self):
        spare = self.waiting()
        kernel = self.open(confine={**POLICY, "network": "none"})
        self.assertNotEqual(kernel.pid, spare)
        wait_until(lambda: spare not in children(self.zygote), "the end of what fits no more")
        self.assertEqual(self.open(confine={**POLICY, "network": "none"}).run("a").status("a"), "success")

    def test_a_kernel_with_packages_gets_the_spare_and_reads_them_and_the_next_kernel_does_not(self):
        packages = os.path.join(self.host.directory, "packages")
        os.mkdir(packages)
        with open(os.path.join(packages, "only_here.py"), "w", encoding="utf-8") as file:
            file.write("value = 7")
        confine = {**POLICY, "hidden": [self.host.directory]}
        of_another_policy = self.waiting()
        self.open(confine=confine)  # the next spare has its policy
        wait_until(lambda: of_another_policy not in children(self.zygote), "the end of what fits no more")
        for given, status in ((packages, "success"), (None, "exception")):
            spare = self.waiting()
            kernel = self.open(confine=confine, packages=given)
            self.assertEqual(kernel.pid, spare)
            self.assertEqual(kernel.run(b=f"print(open({packages!r} + '/only_here.py').read())").status("b"), status)
            self.assertEqual(kernel.run(c="import only_here").status("c"), status)

    def test_kernels_that_are_not_confined_do_not_use_the_spare(self):
        spare = self.waiting()
        self.assertNotEqual(self.open().pid, spare)
        self.assertIn(spare, children(self.zygote))

    def test_a_kernel_starts_without_a_spare(self):
        spare = self.waiting()
        os.kill(spare, signal.SIGKILL)
        wait_until(lambda: spare not in children(self.zygote), "its end")
        self.assertEqual(self.open(confine=POLICY).run("a").status("a"), "success")
        self.waiting()

    def test_the_spare_ends_with_the_zygote(self):
        spare = self.waiting()
        os.kill(self.zygote, signal.SIGKILL)
        wait_until(lambda: not os.path.exists(f"/proc/{spare}"), "the end of the spare")

    def test_no_kernel_has_a_descriptor_of_the_spare(self):
        self.waiting()
        for confine in (None, POLICY):
            kernel = self.open(confine=confine)
            self.assertEqual(sockets_of(kernel), sockets_of(self.first))


if __name__ == "__main__":
    unittest.main()
