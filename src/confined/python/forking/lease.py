"""The time for which a kernel host on another machine may live without a message from its server.

A server gives up a node that it cannot reach, and opens the node's sessions elsewhere. The kernels of the node must
end before that, even when the node's main program is stopped. The time includes suspension of the machine
(CLOCK_BOOTTIME).
"""

import os
import time
from math import inf


class Lease:
    """Ends `seconds` after the last renewal."""

    def __init__(self, seconds: float):
        self._seconds = seconds
        self.renew()

    @classmethod
    def of_environment(cls):
        """Returns the lease that TROUPE_LEASE_S names; without this variable, one that never ends."""
        return cls(float(os.environ.get("TROUPE_LEASE_S") or inf))

    def renew(self):
        self._ends_at = time.clock_gettime(time.CLOCK_BOOTTIME) + self._seconds

    def left_s(self) -> float:
        return self._ends_at - time.clock_gettime(time.CLOCK_BOOTTIME)
