"""What the zygote knows of a process that it has forked."""

import os
import signal
import struct

import processes

CODE = struct.Struct("i")


class Child:
    """A process whose end is the end of what an order started: a kernel, its init, or a conversion."""

    def __init__(self, id, link, group):
        self.id = id  # None: nobody is told of its end
        self.group = group  # the control group that limits it, or None
        self.link = link  # a pipe on which a session's init says how the kernel ended; None: there is no init
        self.has_ended = False  # and that was said

    def signal(self, pid, number):
        """2 and 15 for the whole group; init passes them on. Nothing happens when the process is gone."""
        try:
            if self.link is not None:
                os.kill(pid, number)
            elif number == signal.SIGKILL:
                processes.kill_tree(pid)
            else:
                os.killpg(pid, number)
        except ProcessLookupError:  # gone, or without a group of its own yet: then no cell runs either
            pass

    def last_words(self):
        """What init said of the kernel's end, as waitstatus_to_exitcode has it; None when it died without a word."""
        said = os.read(self.link, CODE.size)
        return CODE.unpack(said)[0] if len(said) == CODE.size else None
