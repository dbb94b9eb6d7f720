"""A signal ends its command also when it comes between two steps of the functions that stand around a cell."""

import asyncio
import functools
import signal
import socket
import time
import unittest

from support import Host  # isort: skip  puts the host on sys.path

from frames import FrameReader
from kernel import interrupts
from kernel.kernel_state import STATE

SEQ = 1


class Frames:
    """The frames of a kernel, of which `waiting` are interrupts that the reader thread has not taken. It takes them when it gets the
    interpreter's lock: when somebody waits for it."""

    def __init__(self):
        self.waiting = []

    def before_waiting(self, call):
        pass

    def peek(self, size):
        return b"".join(interrupts.INTERRUPT_HEAD + interrupts.SEQ.pack(seq) for seq in self.waiting)[:size]

    def has_read_all(self):
        while self.waiting:
            STATE.interrupts.announce(interrupts.SEQ.pack(self.waiting.pop(0)))
        return True


def raise_from_marimo(number, frame):
    raise KeyboardInterrupt


class Interrupts(unittest.TestCase):
    def setUp(self):
        self.interrupts = STATE.interrupts = interrupts.Interrupts(Frames())
        self.interrupts.begin(SEQ)
        before = signal.signal(signal.SIGINT, self.interrupts.replace(raise_from_marimo))
        self.addCleanup(signal.signal, signal.SIGINT, before)

    def signal_now(self):
        """Sends this process the signal that the server has just announced. Its handler runs before the next step."""
        self.interrupts.announce(interrupts.SEQ.pack(SEQ))
        signal.raise_signal(signal.SIGINT)

    def test_a_signal_just_before_the_code_of_a_cell_ends_it(self):
        async def execute(executor, cell, glbls):
            self.fail("the cell has run")

        wrapper = interrupts._execute_unless_due(execute)
        interrupts._EXPECTS[wrapper.__code__] = (True, True)
        self.interrupts.announce(interrupts.SEQ.pack(SEQ))
        # A function in C has no frame: the handler finds the wrapper itself interrupted.
        self.interrupts.raise_if_due = functools.partial(signal.raise_signal, signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            asyncio.run(wrapper(None, None, {}))

    def test_a_signal_just_before_a_function_of_an_element_is_awaited_ends_it(self):
        async def function():
            await asyncio.sleep(60)

        async def call():
            self.signal_now()
            await interrupts._await_interruptibly(function())

        with self.assertRaises(KeyboardInterrupt):
            asyncio.run(call())
        self.assertTrue(STATE.interrupted)

    def test_of_two_frames_that_the_reader_has_not_taken_each_signal_finds_its_own(self):
        """The reader thread needs the interpreter's lock, which the main thread may keep longer than a command takes."""
        reader = self.interrupts._frames
        reader.waiting = [1, 2]
        signal.raise_signal(signal.SIGINT)
        self.interrupts.end()
        signal.raise_signal(signal.SIGINT)
        started_at = time.monotonic()
        self.interrupts.begin(2)
        self.assertLess(time.monotonic() - started_at, interrupts.MAX_WAIT_S / 2, "a signal that has come was waited for")
        self.assertTrue(self.interrupts.is_due)


class LookingAhead(unittest.TestCase):
    def test_a_frame_that_is_being_taken_is_not_taken_for_none(self):
        """The reader thread may take the frame from the socket between the two steps of a look at it."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            reader = FrameReader(theirs)
            reader._source.is_waiting = True
            self.assertEqual(reader.peek(1), b"")
            look = reader._source.peek

            def take_before(size):
                reader._source.is_waiting = False
                return look(size)

            reader._source.peek = take_before
            self.assertIsNone(reader.peek(1))


class Kernels(unittest.TestCase):
    def setUp(self):
        self.host = Host()
        self.addCleanup(self.host.stop)

    def test_a_signal_ends_code_that_is_about_to_continue_and_never_waits_again(self):
        kernel = self.host.open({})
        code = """
import asyncio, signal
asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)  # handled when the next line has suspended this code
await asyncio.sleep(0)
while True: pass"""
        self.assertTrue(kernel.scratchpad(code).done["interrupted"])
        self.assertEqual(kernel.evaluate("1 + 1"), 2)

    def test_a_signal_ends_code_that_waits(self):
        kernel = self.host.open({})
        code = """
import asyncio, signal
asyncio.get_running_loop().call_later(0.05, signal.raise_signal, signal.SIGINT)
await asyncio.sleep(60)"""
        self.assertTrue(kernel.scratchpad(code).done["interrupted"])

    def test_code_that_cleans_up_after_a_signal_is_not_cancelled_twice(self):
        kernel = self.host.open({})
        code = """
import asyncio, signal
asyncio.get_running_loop().call_later(0.05, signal.raise_signal, signal.SIGINT)
try:
    await asyncio.sleep(60)
finally:
    await asyncio.sleep(0.05)
    print("clean")"""
        done = kernel.scratchpad(code)
        self.assertEqual((done.printed, done.done["interrupted"]), ("clean\n", True))


if __name__ == "__main__":
    unittest.main()
