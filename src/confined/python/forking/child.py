"""The zygote's record of a process that it has forked."""

import os
import signal
import struct

import processes

CODE = struct.Struct("i")
MAX_WORDS_BYTES = 4096


class Child:
    """A process that an order started and whose end is reported for it: a kernel, its init, or a conversion."""

    def __init__(self, id, link, group, words, watched=None, has_init=False):
        self.id = id  # None: its end is not reported
        self.group = group  # the control group that limits it, or None
        self.share = None  # processes with the same share have one memory limit together
        self.link = link  # a pipe on which a session's init or a supervisor says how the kernel ended; None: there is neither
        self.has_init = has_init  # whether it is the init of namespaces, whose end ends all their processes
        self.words = words  # a file in memory with what the child printed before it began to work
        self.watched = watched  # (key, limit, size of its /tmp) if the memory watch counts its memory, or None
        self.exceeds = False  # whether the memory watch has reported it
        self.has_ended = False  # whether its end was reported

    def signal(self, pid, number):
        """Sends a signal. SIGINT and SIGTERM go to the whole group, through the init if there is
        one, or through the supervisor. Ignored when the child is gone.
        """
        try:
            if self.has_init:
                os.kill(pid, number)
            elif number == signal.SIGKILL:
                processes.kill_tree(pid)  # a supervisor's kernel becomes an orphan, which is killed as well
            elif self.link is not None:
                os.kill(pid, number)
            else:
                os.killpg(pid, number)
        except ProcessLookupError:  # the child is gone, or has no group of its own yet, so no cell runs
            pass

    def is_out_of_memory(self) -> bool:
        """Returns whether the child was killed because of its limit of memory."""
        return self.exceeds or (self.group is not None and self.group.has_killed())

    def code_from_init(self):
        """Returns the exit code of the kernel that init reported, in the form of
        waitstatus_to_exitcode; None when init died without a report."""
        said = os.read(self.link, CODE.size)
        return CODE.unpack(said)[0] if len(said) == CODE.size else None

    def read_words(self) -> str:
        """
        Returns the last part of its output from before it began to work. If it failed to start, this is the reason.
        """
        start = max(0, os.fstat(self.words).st_size - MAX_WORDS_BYTES)
        return os.pread(self.words, MAX_WORDS_BYTES, start).decode(errors="replace").strip()

    def close(self):
        """Closes the zygote's descriptors for it."""
        os.close(self.words)
        if self.link is not None:
            os.close(self.link)


def open_words() -> int:
    """Returns a new file in memory for a child's standard error."""
    return os.memfd_create("stderr", os.MFD_CLOEXEC)
