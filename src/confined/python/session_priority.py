"""The priority of this process's session among the sessions of the machine.

Where Linux groups processes by session (autogroups, sched(7)), nice(2) counts among the processes of one session
only: a kernel leads a session of its own, so without this its niceness would not help the server.
"""

import os
import random
import threading
import time
from contextlib import suppress

FILE = "/proc/self/autogroup"
# Processes without privileges share a limit: Linux accepts one such change every tenth of a second on the machine
RETRY_S = 0.1


class SessionPriority:
    """Opens the file while /proc can still be written. It is used once the process leads its session.
    """

    def __init__(self):
        self.file = None
        with suppress(OSError):  # there are no autogroups, or /proc is missing or read-only
            self.file = os.open(FILE, os.O_WRONLY | os.O_CLOEXEC)

    def give_way(self, nice: int):
        """Sets the niceness of the session, from 0 to 19. If the system does not accept it at once,
        a thread tries again.
        """
        if not self._try(nice):
            threading.Thread(target=self.give_way_soon, args=(nice, None), daemon=True).start()

    def give_way_soon(self, nice: int, within_s: float | None):
        """Sets the niceness of the session when the system accepts it. Gives up after `within_s`;
        None: never.
        """
        deadline = None if within_s is None else time.monotonic() + within_s
        while not self._try(nice):
            if deadline is not None and time.monotonic() >= deadline:
                return self._close()
            time.sleep(random.uniform(RETRY_S, 2 * RETRY_S))

    def _try(self, nice) -> bool:
        """Returns False when the system must be asked again later."""
        if self.file is None:
            return True
        try:
            if nice > 0:
                os.write(self.file, str(nice).encode())
        except BlockingIOError:
            return False
        except OSError:
            pass
        self._close()
        return True

    def _close(self):
        os.close(self.file)
        self.file = None
