"""Interrupts of this kernel's work, each meant for one command.

To interrupt a command the server first sends a frame with the command's seq and then, once the frame is in the kernel's
socket, has SIGINT sent to the kernel's process group. The frame names the command; the signal reaches the children of a
cell, and native code that looks for signals while it holds the interpreter's lock. Therefore:

- An interrupt that comes before its command runs anything is not lost: the first cell ends before its first line.
- A SIGINT that comes just before the main thread begins to wait, in `time.sleep` for instance, does not end that wait: Python
  runs its handler when the main thread has the interpreter again. So the reader thread sends the main thread signals that do
  nothing, until the handler has run.
- A SIGINT that comes after its command has ended is dropped, and no command begins while one is on its way.
- KeyboardInterrupt is raised only where marimo expects it: in the code of a cell, in the hooks after it, which make its
  output, and in functions of UI elements. Anywhere else the run stops before its next cell. Raised elsewhere it would end the kernel, or leave the
  graph and the server's document different.

A SIGINT that no frame has announced is a notebook's own (os.kill, _thread.interrupt_main), and interrupts the running
command.
"""

import asyncio
import dataclasses
import signal
import struct
import sys
import threading
import time

from marimo._code_mode._context import AsyncCodeModeContext
from marimo._output import formatting
from marimo._runtime import runtime
from marimo._runtime.context.kernel_context import KernelRuntimeContext
from marimo._runtime.context.types import safe_get_context
from marimo._runtime.exceptions import MarimoRuntimeException
from marimo._runtime.executor.executor import DefaultExecutor
from marimo._runtime.functions import Function
from marimo._runtime.runner.cell_runner import Runner
from marimo._runtime.runner.scheduler import SequentialScheduler
from marimo._utils.signals import SigintHandler

from frames import HEAD, INTERRUPT
from kernel.kernel_state import STATE

SEQ = struct.Struct("<I")
INTERRUPT_HEAD = HEAD.pack(SEQ.size + 1, INTERRUPT)
MAX_WAIT_S = 1.0  # for a frame that its signal has overtaken, and for an announced signal
POLL_S = 0.001
FIRST_NUDGE_MS, MAX_NUDGE_MS = 2, 1000
NUDGE = signal.SIGURG  # no code waits for this signal, and by default it does nothing
FIRST_POLL_S = 0.00002  # the reader only needs the interpreter's lock, which it gets while this thread sleeps


class Interrupts:
    """The handler of SIGINT. Owned by one kernel process. Only `announce` and `nudge` are called by the reader thread."""

    def __init__(self, frames):
        self._frames = frames
        frames.before_waiting(self.nudge)
        self._main_thread = threading.get_ident()
        self._nudge_ms = FIRST_NUDGE_MS  # when to check whether the handler has run
        self._is_looked_for = False
        self._wanted = None  # seq of the command that the server has asked to interrupt last
        self._read = 0  # the number of frames that the reader thread has taken
        self._announced = 0  # the number of frames that have come; each is followed by one SIGINT
        self._arrived = 0  # the number of those signals that have come
        self._current = None  # seq of the command that is being handled
        self.task = None  # the function of an element that is being awaited
        self._raised = None  # seq of the command that was interrupted last
        self._after_writes = SigintHandler(self._interrupt)  # in the middle of a frame it waits for the frame's end
        self._own_after_writes = SigintHandler(self._deliver)
        self._cancel_run = None  # marimo's handler: it stops the run, its tasks and its DuckDB query, and raises

    def announce(self, body):
        """Takes one frame, which asks to interrupt the command with this seq. Raises struct.error
        if the frame is malformed.
        """
        (wanted,) = SEQ.unpack(body)
        self._read += 1
        self._note(wanted, self._read)

    def _note(self, wanted, number):
        """
        Takes the frame with this number. Does nothing when it was taken before, because both threads may find the
        same frame.
        """
        if number > self._announced:
            self._wanted, self._announced, self._is_looked_for = wanted, number, False

    def nudge(self):
        """
        Ends the main thread's wait if an announced signal was not handled for a while. Returns the milliseconds after
        which to call this again, or None when nothing is left to do.
        """
        if self._arrived >= self._announced:
            return None
        if not self._is_looked_for:
            self._is_looked_for, self._nudge_ms = True, FIRST_NUDGE_MS
            return FIRST_NUDGE_MS
        signal.pthread_kill(self._main_thread, NUDGE)
        self._nudge_ms = min(self._nudge_ms * 2, MAX_NUDGE_MS)
        return self._nudge_ms

    def begin(self, seq):
        """Called before a command is handled. Waits for signals that are on their way to an earlier one."""
        deadline = time.monotonic() + MAX_WAIT_S
        while self._arrived < self._announced and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self._arrived = self._announced
        self._current = seq

    def end(self):
        """Called when a command has been handled."""
        self._current = None

    @property
    def is_due(self) -> bool:
        """Whether the server has asked to interrupt the current command."""
        return self._current is not None and self._current == self._wanted

    def raise_if_due(self):
        """
        Called where notebook code would begin or continue. Raises KeyboardInterrupt if the server has asked for its
        end.
        """
        if self.is_due:
            raise KeyboardInterrupt

    def replace(self, handler):
        """Takes marimo's handler of SIGINT, and returns the one to install in its place."""
        self._cancel_run = handler
        signal.signal(NUDGE, lambda number, frame: None)
        return self

    def __call__(self, number, frame):
        """Handles SIGINT, on the main thread."""
        self._wait_for_reader()
        if self._arrived < self._announced:
            self._arrived += 1
            self._after_writes(number, frame)
        elif not self.is_due:
            self._own_after_writes(number, frame)

    def _wait_for_reader(self):
        """Waits until frames that were sent before the signal are read: native code may have kept the reader waiting. The
        usual case, in which the next frame is the interrupt itself, needs no wait for the reader, which would need two
        changes of thread."""
        number = self._read + 1  # read first: if the reader takes the frame meanwhile, it has this number
        ahead = self._frames.peek(HEAD.size + SEQ.size)
        if ahead == b"":
            return
        is_new = number > self._announced  # otherwise the frame belongs to an earlier signal
        if is_new and ahead is not None and len(ahead) == HEAD.size + SEQ.size and ahead.startswith(INTERRUPT_HEAD):
            self._note(*SEQ.unpack_from(ahead, HEAD.size), number)
            return
        deadline, pause = time.monotonic() + MAX_WAIT_S, FIRST_POLL_S
        while not self._frames.has_read_all() and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(pause * 2, POLL_S)

    def _interrupt(self, number, frame):
        if self.is_due and self._raised != self._current:
            self._deliver(number, frame)

    def _deliver(self, number, frame):
        may_raise = _may_raise(sys._getframe(1))
        if may_raise:
            self._raised = self._current
        try:
            self._cancel_run(number, frame)
        except KeyboardInterrupt:
            pass
        context = safe_get_context()
        if isinstance(context, KernelRuntimeContext) and context.active_scheduler is not None:
            context.active_scheduler.interrupted = True
        if may_raise:
            raise KeyboardInterrupt
        if self.task is not None:
            _cancel(self.task)


# For each function: whether KeyboardInterrupt may be raised in its callees, and whether in the function itself. The
# innermost of these functions on the stack decides.
_EXPECTS = {}


def _cancel(task):
    """
    Cancels a suspended task before it continues. marimo leaves that to the event loop, and then the task might first
    continue with code that never waits again. A running task is cancelled when it next waits, unless an exception
    ends it before.
    """
    loop = task.get_loop()
    if task is asyncio.current_task(loop):
        loop.call_soon_threadsafe(task.cancel)
    else:
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)  # so that the loop does not wait for anything else


def _cancel_all(scheduler):
    """Takes the place of marimo's function of this name, for `_cancel`."""
    scheduler.interrupted = True
    for task in [*scheduler._active.values()]:
        _cancel(task)


# The functions between the interrupted one and `_deliver`. Other functions of this file can be the interrupted one.
_HANDLERS = {Interrupts.__call__.__code__, Interrupts._interrupt.__code__}
_DEFERRING_FILE = SigintHandler.__call__.__code__.co_filename


def _may_raise(frame) -> bool:
    while frame is not None and (frame.f_code in _HANDLERS or frame.f_code.co_filename == _DEFERRING_FILE):
        frame = frame.f_back
    interrupted = frame
    while frame is not None:
        if frame.f_code in _EXPECTS:
            in_callees, in_itself = _EXPECTS[frame.f_code]
            return in_itself if frame is interrupted else in_callees
        frame = frame.f_back
    return False


def install():
    """Patches marimo in this process; once, in the zygote, after everything else that patches the same functions."""
    _EXPECTS[DefaultExecutor.execute_cell_async.__code__] = (True, True)
    _EXPECTS[Runner._run_post_execution_hooks.__code__] = (True, False)
    for forbidden in (Runner.run_all, AsyncCodeModeContext.__aenter__, AsyncCodeModeContext.__aexit__):
        _EXPECTS[forbidden.__code__] = (False, False)
    DefaultExecutor.execute_cell_async = _execute_unless_due(DefaultExecutor.execute_cell_async)
    _EXPECTS[DefaultExecutor.execute_cell_async.__code__] = (True, True)
    Runner._finalize_run_result = _accept_bare_interrupts(Runner._finalize_run_result)
    formatting.try_format = _interruptibly(formatting.try_format)
    _EXPECTS[Function.__call__.__code__] = (True, False)
    Function.__call__ = _call_interruptibly(Function.__call__)
    Runner.run_all = _run_unless_due(Runner.run_all)
    AsyncCodeModeContext.__aenter__ = _raise_afterwards(AsyncCodeModeContext.__aenter__)
    AsyncCodeModeContext.__aexit__ = _raise_afterwards(AsyncCodeModeContext.__aexit__)
    SequentialScheduler.cancel_all = _cancel_all
    construct = runtime.handlers.construct_interrupt_handler
    runtime.handlers.construct_interrupt_handler = lambda: STATE.interrupts.replace(construct())
    runtime.restore_signals = _ignore_early_interrupts(runtime.restore_signals)


def _execute_unless_due(execute):
    async def execute_cell_async(self, cell, glbls):
        """
        Handles an interrupt that came before this function was on the stack. The handler itself raises a later
        interrupt.
        """
        STATE.interrupts.raise_if_due()
        return await execute(self, cell, glbls)

    return execute_cell_async


def _accept_bare_interrupts(finalize):
    def finalize_run_result(self, raw_result, cell_id):
        """Makes an interrupt that came just before or after the cell's code look as if the cell had raised it."""
        if isinstance(raw_result.exception, KeyboardInterrupt):
            raised = MarimoRuntimeException()
            raised.__cause__ = raw_result.exception.with_traceback(None)
            raw_result = dataclasses.replace(raw_result, exception=raised)
        return finalize(self, raw_result, cell_id)

    return finalize_run_result


def _interruptibly(try_format):
    def try_format_interruptibly(*args, **kwargs):
        """Raises the interrupt of a formatter, which marimo would take for a bug of that formatter and then try another."""
        formatted = try_format(*args, **kwargs)
        if isinstance(formatted.exception, KeyboardInterrupt):
            raise formatted.exception
        return formatted

    return try_format_interruptibly


def _call_interruptibly(call):
    def call_interruptibly(self, args):
        """Notes that the function of an element was interrupted, because marimo reports that only
        in its answer.
        """
        try:
            answer = call(self, args)
        except KeyboardInterrupt:
            STATE.interrupted = True
            raise
        return _await_interruptibly(answer) if asyncio.iscoroutine(answer) else answer

    return call_interruptibly


async def _await_interruptibly(coroutine):
    """Awaits a function of an element. While the function waits, no signal handler can raise an interrupt in it."""
    task = STATE.interrupts.task = asyncio.ensure_future(coroutine)
    if STATE.interrupts.is_due:  # the signal came before its handler could find the task
        task.cancel()
    try:
        return await task
    except (asyncio.CancelledError, KeyboardInterrupt):
        STATE.interrupted = True
        raise KeyboardInterrupt from None
    finally:
        STATE.interrupts.task = None


def _run_unless_due(run_all):
    async def run_all_unless_due(self):
        """Runs no cell of a command that must end, and ends code that has run cells (code mode) as well."""
        if STATE.interrupts.is_due:
            self.interrupted = True
        STATE.run_depth += 1
        try:
            await run_all(self)
        finally:
            STATE.run_depth -= 1
        if STATE.run_depth > 0:
            STATE.interrupts.raise_if_due()

    return run_all_unless_due


def _raise_afterwards(step):
    async def take_step(self, *args):
        answer = await step(self, *args)
        STATE.interrupts.raise_if_due()
        return answer

    return take_step


def _ignore_early_interrupts(restore_signals):
    """Ignores SIGINT until marimo has a handler, because before that the signal would end the
    kernel.
    """

    def restore():
        restore_signals()
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    return restore
