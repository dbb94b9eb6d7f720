"""The inits that wait for the next kernel and for the next process with one request."""

import os
import signal
import unittest

from support import Host, wait_until

from confinement import detect
from forking import cgroups

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


NOTEBOOK = {"version": "1", "app": {"options": {}}, "cells": [{"cell_id": "a", "code": "x = 1", "options": {}}]}
BARE = {"network": "least", "processes": 64, "tmp_mb": 1}
LIMIT = 3 << 30
CONFINEMENT = ("Uid", "CapEff", "NoNewPrivs", "Seccomp", "Seccomp_filters")


def inner_process(pid):
    """Returns the pid of the process below an init."""
    (inner,) = children(pid)
    return inner


def confinement_of(pid):
    """Returns what the system says about the confinement of a process, and the paths at which something is mounted for it."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    with open(f"/proc/{pid}/mounts", encoding="ascii") as file:
        mounts = [line.split()[1:4] for line in file]
    return {name: status.get(name) for name in CONFINEMENT}, mounts


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read()


def groups_of(pid):
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
        return file.read()


@unittest.skipUnless(detect.detect(None).namespaces, "this machine has no namespaces for its users")
class BriefSpareTest(unittest.TestCase):
    def setUp(self):
        self.host = Host()
        self.addCleanup(self.host.stop)
        (self.zygote,) = self.host.children()
        self.used = set()
        self.open()  # when there was no spare yet

    def open(self, share="first", **order):
        """Returns the pid and the frames of a conversion that waits for its request."""
        id, frames = self.host.await_conversion("write", "html", confine=BARE, memory=LIMIT, share=share, **order)
        pid = self.host.wait_for("forked", id)["pid"]
        self.used.add(pid)
        return pid, frames

    def unused(self):
        """Returns the spares. The memory watch is none."""
        return [pid for pid in children(self.zygote) if pid not in self.used and "watch" not in name_of(pid)]

    def waiting(self):
        wait_until(lambda: len(self.unused()) == 1, "a spare")
        return self.unused()[0]

    def test_the_next_conversion_gets_the_spare_and_another_spare_is_made(self):
        spare = self.waiting()
        pid, frames = self.open(share="second")
        self.assertEqual(pid, spare)
        frames.send(1, {"serialization": NOTEBOOK})
        self.assertIn("x = 1", frames.read()["content"])
        self.assertNotEqual(self.waiting(), spare)

    def test_a_conversion_from_a_spare_answers_as_one_without_a_spare(self):
        requests = [("write", format, {"serialization": NOTEBOOK}) for format in ("html", "py", "ipynb", "md")]
        requests.append(("read", "py", {"content": "import marimo\napp = marimo.App()\n@app.cell\ndef a():\n    x = 1\n"}))
        for number, (direction, format, request) in enumerate(requests):
            plain, _ = self.host.convert(direction, format, request)  # one that is not confined uses no spare
            spare = self.waiting()
            share = f"of conversion {number}"  # a workspace whose last process has just ended may still have it
            answer, ended = self.host.convert(direction, format, request, confine=BARE, memory=LIMIT, share=share)
            self.used.add(self.host.wait_for("forked", ended["id"])["pid"])
            self.assertIn(spare, self.used)
            self.assertEqual(answer, plain)

    @unittest.skipUnless(os.geteuid() == 0, "only root may look into confined processes")
    def test_a_conversion_from_a_spare_is_confined_as_one_without_a_spare(self):
        self.waiting()
        from_spare, _ = self.open(share="second")
        without, _ = self.open(share="second")
        self.assertEqual(confinement_of(inner_process(from_spare)), confinement_of(inner_process(without)))
        for name in ("net", "pid", "mnt", "ipc"):
            of_host = os.readlink(f"/proc/{self.zygote}/ns/{name}")
            self.assertNotEqual(os.readlink(f"/proc/{inner_process(from_spare)}/ns/{name}"), of_host)

    def test_conversions_of_one_workspace_share_the_memory_of_the_first_and_only_that_one_gets_the_spare(self):
        spare = self.waiting()
        first, _ = self.open(share="second")
        self.assertEqual(first, spare)
        other = self.waiting()
        second, _ = self.open(share="second")
        self.assertNotEqual(second, other)
        if cgroups.find():
            self.assertEqual(groups_of(second), groups_of(first))
            self.assertNotEqual(groups_of(other), groups_of(first))

    def test_a_check_of_long_code_gets_the_spare_and_the_check_of_short_code_of_all_workspaces_does_not(self):
        spare = self.waiting()
        for memory, gets_it in (({}, False), ({"memory": LIMIT, "share": "second"}, True)):
            id, frames = self.host.connect({"seconds": 5}, op="syntax", confine=BARE, **memory)
            pid = self.host.wait_for("forked", id)["pid"]
            self.used.add(pid)
            self.assertEqual(frames.read(), {"op": "syntax-ready"})
            frames.send(1, {"id": 3, "codes": ["x = 1", "x = = 1"]})
            self.assertEqual(frames.read(), {"op": "parsed", "id": 3, "parses": [True, False]})
            self.assertEqual(pid == spare, gets_it)

    def test_a_kernel_does_not_get_the_spare_of_conversions_and_does_not_end_it(self):
        spare = self.waiting()
        kernel = self.host.open({"a": "1"}, confine=POLICY)
        self.assertNotEqual(kernel.pid, spare)
        self.assertIn(spare, self.unused())

    def test_a_conversion_starts_after_its_spare_was_killed(self):
        spare = self.waiting()
        os.kill(spare, signal.SIGKILL)
        wait_until(lambda: spare not in children(self.zygote), "its end")
        _, frames = self.open(share="second")
        frames.send(1, {"serialization": NOTEBOOK})
        self.assertTrue(frames.read()["ok"])


if __name__ == "__main__":
    unittest.main()
