"""The lease of a kernel host on another machine."""

import os
import time
import unittest
from unittest import mock

from support import Host, is_alive, wait_until  # first: it finds the modules of the kernel host

from forking.lease import Lease


class AHostWithALease(unittest.TestCase):
    def test_it_ends_with_its_kernels_when_it_hears_nothing_although_nothing_was_closed(self):
        for preload in ("", "json"):
            host = Host(preload=preload, env={"TROUPE_LEASE_S": "2"})
            self.addCleanup(host.stop)
            if preload:
                host.wait_for("preloaded")
            kernel = host.open({"a": "1"})
            host.tell(op="ping")
            host.wait_for("pong")
            self.assertIsNone(host.process.poll())
            host.process.wait(timeout=60)
            wait_until(lambda pid=kernel.pid: not is_alive(pid))


class TheLease(unittest.TestCase):
    def test_without_the_variable_it_never_ends(self):
        with mock.patch.dict(os.environ, clear=True):
            self.assertEqual(Lease.of_environment().left_s(), float("inf"))

    def test_it_ends_when_it_is_not_renewed_and_counts_suspension_of_the_machine(self):
        with mock.patch("time.clock_gettime") as clock, mock.patch.dict(os.environ, {"TROUPE_LEASE_S": "5"}):
            clock.return_value = 100.0
            lease = Lease.of_environment()
            clock.return_value = 104.0
            self.assertEqual(lease.left_s(), 1.0)
            lease.renew()
            clock.return_value = 109.0
            self.assertEqual(lease.left_s(), 0.0)
            self.assertTrue(all(call.args == (time.CLOCK_BOOTTIME,) for call in clock.call_args_list))


if __name__ == "__main__":
    unittest.main()
