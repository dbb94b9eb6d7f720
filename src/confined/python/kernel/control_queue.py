"""The queue of commands between the reader thread and marimo's loop. marimo waits for commands in a thread of its own, which then
wakes the loop. Here the reader thread wakes the loop itself, which saves a change of thread for each command."""

import asyncio
import collections
import contextlib

from marimo._runtime import kernel_lifecycle


MAX_SILENCE_S = 30


class ControlQueue:
    """Commands in their order. `put` may be called by every thread, `take` by the loop that handles them.

    The loop calls `answer_silence` once it has waited for `MAX_SILENCE_S` although the server waits for the answer to
    a command (`is_awaited`). By then every command that came was handled.
    """

    def __init__(self, is_awaited=lambda: False, answer_silence=lambda: None):
        self._is_awaited, self._answer_silence = is_awaited, answer_silence
        self._commands = collections.deque()
        self._arrived = None
        self._loop = None  # set when it begins to wait, after `_arrived`

    def put(self, command):
        self._commands.append(command)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and no command is handled any more
                self._loop.call_soon_threadsafe(self._arrived.set)

    put_nowait = put

    async def take(self):
        """Returns the next command. Other tasks of the loop, which cells have made, get a turn before it."""
        if self._loop is None:
            self._arrived, self._loop = asyncio.Event(), asyncio.get_running_loop()
        if self._commands:
            await asyncio.sleep(0)
        while not self._commands:
            self._arrived.clear()  # a `put` after this check sets the event in a later turn of the loop
            await self._wait()
        return self._commands.popleft()

    async def _wait(self):
        if not self._is_awaited():
            await self._arrived.wait()
            return
        try:
            await asyncio.wait_for(self._arrived.wait(), MAX_SILENCE_S)
        except TimeoutError:
            self._answer_silence()


def install():
    """Patches marimo in this process; once, in the zygote."""
    kernel_lifecycle.threaded_queue_reader = ControlQueue.take
