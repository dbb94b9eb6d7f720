"""The console output of cells on its way to the server: marimo's console without its faults.

- marimo appends every printed string to the previous text (10 MiB of small lines take seconds): here they are joined
  once per batch.
- marimo makes an object and wakes a thread for each write: here a write joins the last one of its kind.
- marimo queues without bound when the server does not read: here print() waits, and an interrupt ends that wait.
- marimo waits for its writer after every cell, two changes of thread: here only when much was printed.
- marimo lets every first line wait 10 ms for a second one: here it goes at once, and output within the next 10 ms is
  sent together.
- marimo cannot attribute the output of a plain thread: here it belongs to the run that started the thread. Workers of
  a pool, which outlive the run that started them, print for the current run.
- marimo stops forwarding the output of subprocesses at the first character that two reads share: here decoding spans
  reads.
- marimo does not wait for the output of subprocesses when their cell ends: here that output belongs to the cell. The
  same holds for output that is still in the buffers of `sys.stdout.buffer`, `sys.__stdout__` and C.

An interrupt may be raised between any two steps of the main thread. An interrupt between two steps of Python could
leave a lock held, which would block the writer for ever. So the main thread takes only locks that are implemented in
C here. A Condition or an Event is entered in steps of Python.

The rest is as in marimo. There is one batch every 10 ms, or at once when the kernel asks for it. Output is merged
only if it has the same cell, stream, kind, run and execution.
"""

import array
import codecs
import collections
import fcntl
import os
import select
import termios
import threading
import time
from concurrent.futures.thread import _worker

from marimo._messaging import streams
from marimo._messaging.cell_output import CellChannel
from marimo._messaging.console_output_worker import TIMEOUT_S, ConsoleMsg, _write_console_output
from marimo._messaging.context import RUN_ID_CTX, execution_id_for
from marimo._messaging.notification import CellNotification
from marimo._messaging.notification_utils import broadcast_notification
from marimo._runtime.context.types import safe_get_context
from marimo._utils.signals import SigintHandler

from kernel import stdio
from kernel.kernel_state import STATE
from outputs import shown_output

DESCRIPTOR = {CellChannel.STDOUT: 1, CellChannel.STDERR: 2}
TRACEBACK = "application/vnd.marimo+traceback"
SHORT_CHARS = 1 << 14  # a longer write may be over marimo's limit for one write, so marimo handles it
BATCH_LIMIT_CHARS = 1 << 18  # a batch this long is sent without waiting for more
UNSENT_LIMIT_CHARS = 1 << 22  # print() waits while more than this has not reached the socket
ROOM_POLL_S = 0.001
FLUSH_LIMIT_S = 5
READ_BYTES = 1 << 16
DRAIN_POLL_S = 0.0002
DRAIN_LIMIT_S = 10  # reached only if a watcher hangs: a busy machine may need seconds


class Printed:
    """Consecutive writes of one kind, see kind_of()."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind, text):
        self.kind = kind
        self.parts = [text]


def kind_of(message):
    return (message.cell_id, message.stream, message.mimetype, message.run_id, message.execution_id)


class Marker:
    """Asks the writer to send everything now, and waits until it has."""

    def __init__(self):
        self.sent = threading.Lock()
        self.sent.acquire()


class Messages(collections.deque):
    """The queue between print() and the writer. Used only under marimo's lock."""

    def __init__(self):
        super().__init__()
        self.waiting_chars = 0  # characters in the queue; after an interrupt the count is too high until the queue is empty
        self.sending_chars = 0  # characters that were taken from the queue and are not in the socket yet

    @property
    def unsent_chars(self):
        return self.waiting_chars + self.sending_chars

    def append(self, message):
        """Called by marimo itself, for long writes, prompts and the end."""
        if isinstance(message, ConsoleMsg):
            message.run_id = message.run_id or _find_run_id()
            self.add(kind_of(message), message.data)
        else:
            super().append(message)

    def add(self, kind, text) -> bool:
        """Adds an entry. Returns whether the writer has to be woken for the entry."""
        empty = not self
        self.waiting_chars += len(text)
        if not empty and type(last := self[-1]) is Printed and last.kind == kind:
            last.parts.append(text)
        else:
            super().append(Printed(kind, text))
        return empty or self.waiting_chars > BATCH_LIMIT_CHARS

    def take_all(self):
        """Returns ([(kind, [text…])…] merged per cell, the marker or None, whether it is the end)."""
        batch, last, marker, ends = [], {}, None, False
        while self and marker is None and not ends:
            message = self.popleft()
            if type(message) is not Printed:
                marker, ends = message, message is None
                continue
            cell_id = message.kind[0]
            if cell_id in last and last[cell_id][0] == message.kind:
                last[cell_id][1].extend(message.parts)
            else:
                last[cell_id] = (message.kind, message.parts)
                batch.append(last[cell_id])
        taken = sum(len(text) for _, parts in batch for text in parts)
        self.sending_chars += taken
        self.waiting_chars = self.waiting_chars - taken if self else 0
        return batch, marker, ends


def install():
    """Replaces marimo's console in kernels that start from here on."""
    streams.deque = Messages
    streams.buffered_writer = write_batches
    streams._forward_os_stream = forward_file_descriptor
    streams.Watcher.pause = _drain_after(streams.Watcher.pause)
    for stream, channel in (
        (streams.ThreadSafeStdout, CellChannel.STDOUT),
        (streams.ThreadSafeStderr, CellChannel.STDERR),
    ):
        stream._write_with_mimetype = _write_with_mimetype(stream._write_with_mimetype, channel)
    streams.ThreadSafeStream.flush_console = flush_console
    threading.Thread.start = _start_for_run(threading.Thread.start)


def _start_for_run(start):
    def start_for_run(self):
        if getattr(self, "_target", None) is not _worker:
            self._of_run = RUN_ID_CTX.get(None)
        start(self)

    return start_for_run


def _find_run_id():
    return RUN_ID_CTX.get(None) or getattr(threading.current_thread(), "_of_run", None)


def _write_with_mimetype(write_long, channel):
    def write_with_mimetype(self, data, mimetype):
        if STATE.is_fork and isinstance(data, str):  # a fork lacks the writer's thread, whose lock may be taken
            text = shown_output.of_traceback(channel, mimetype, data).text if mimetype == TRACEBACK else data
            os.write(DESCRIPTOR[channel], text.encode("utf-8", "replace"))
            return len(data)
        stream = self._stream
        messages = stream.console_msg_queue
        while messages.unsent_chars > UNSENT_LIMIT_CHARS and stream.buffered_console_thread.is_alive():
            time.sleep(ROOM_POLL_S)  # an interrupt can end this wait; a Condition's wait would not survive the interrupt
        cell_id = stream.cell_id
        if type(data) is not str or len(data) > SHORT_CHARS or cell_id is None:
            return write_long(self, data, mimetype)
        kind = (cell_id, channel, mimetype, _find_run_id(), execution_id_for(cell_id))
        with stream.console_msg_cv._lock:
            if messages.add(kind, data) and not (mimetype == TRACEBACK and _is_running_cells()):
                stream.console_msg_cv.notify()
        return len(data)

    return write_with_mimetype


def _is_running_cells():
    """
    Returns whether this is the main thread during a run of cells. After each cell the main thread sends the printed
    text, so the traceback of a cell need not wake the writer.
    """
    return STATE.run_depth > 0 and threading.current_thread() is threading.main_thread()


def wake_writer():
    """Called after a command: an interrupt may have come between a traceback and the end of its cell."""
    context = safe_get_context()
    stream = context and context.stream
    if stream is not None and stream.redirect_console and stream.console_msg_queue:
        with stream.console_msg_cv._lock:
            stream.console_msg_cv.notify()


def flush_console(self):
    """
    Returns when everything that was printed is sent to the server. Returns after 5 s at the latest, because a server
    that does not read could block it.
    """
    if not (self.redirect_console and self.console_msg_queue.unsent_chars and self.buffered_console_thread.is_alive()):
        return
    if threading.current_thread() is threading.main_thread() and _send_without_writer(self):
        return
    marker = Marker()
    with self.console_msg_cv._lock:
        self.console_msg_queue.append(marker)
        self.console_msg_cv.notify()
    marker.sent.acquire(timeout=FLUSH_LIMIT_S)


def _send_without_writer(stream) -> bool:
    """Sends printed text from the calling thread, because waiting for the writer takes two
    thread switches. Called on the main thread. Returns False and sends nothing in two cases:
    while the writer sends, and when the socket may not take all of the text at once, because an
    interrupt would then have to wait."""
    messages = stream.console_msg_queue
    with SigintHandler.defer(), stream.console_msg_cv._lock:
        if messages.sending_chars or messages.waiting_chars > SHORT_CHARS or any(type(one) is not Printed for one in messages):
            return False
        batch, _, _ = messages.take_all()
        send(batch, stream)
        messages.sending_chars = 0
    return True


def write_batches(messages, stream, arrived):
    """Runs in the console writer's thread: drains `messages`, guarded by the condition `arrived`, until a None comes."""
    ends, next_batch_at = False, 0.0
    while not ends:
        with arrived:
            arrived.wait_for(lambda: messages)
            arrived.wait_for(lambda: _is_due(messages), next_batch_at - time.monotonic())
            batch, marker, ends = messages.take_all()
        if batch:
            next_batch_at = time.monotonic() + TIMEOUT_S
        send(batch, stream)
        messages.sending_chars = 0
        if marker is not None:
            marker.sent.release()


def send(batch, stream):
    for (cell_id, channel, mimetype, run_id, execution_id), parts in batch:
        if mimetype == TRACEBACK:
            entry = shown_output.of_traceback(channel, mimetype, "".join(parts))
            ids = {"cell_id": cell_id, "run_id": run_id, "execution_id": execution_id}
            broadcast_notification(CellNotification(**ids, console=entry), stream)
            continue
        for text in joined(parts) if mimetype == "text/plain" else ["".join(parts)]:
            _write_console_output(stream, channel, cell_id, text, mimetype, run_id, execution_id)


def joined(parts):
    """Yields the text of the parts in pieces of at most BATCH_LIMIT_CHARS. While the server does not read, megabytes
    accumulate; as one message they would exceed its limit for slow subscribers."""
    piece, chars = [], 0
    for part in parts:
        for start in range(0, len(part), BATCH_LIMIT_CHARS):
            text = part[start : start + BATCH_LIMIT_CHARS]
            if chars + len(text) > BATCH_LIMIT_CHARS:
                yield "".join(piece)
                piece, chars = [], 0
            piece.append(text)
            chars += len(text)
    if piece:
        yield "".join(piece)


def _is_due(messages):
    """
    Returns whether the writer can stop waiting. When there are no messages, the main thread has already sent them.
    """
    return not messages or type(messages[-1]) is not Printed or messages.waiting_chars > BATCH_LIMIT_CHARS


def forward_file_descriptor(standard_stream, fd, should_exit):
    """Runs in a watcher's thread: passes output of subprocesses and C code on fd 1 or 2 to the running cell, or else to
    the log."""
    decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
    arrived = select.poll()
    arrived.register(fd, select.POLLIN)
    while not should_exit.is_set():
        arrived.poll()
        standard_stream._is_forwarding = True  # set before the read, which may empty the pipe
        try:
            data = os.read(fd, READ_BYTES)
        except OSError:  # marimo closes the pipe to end this thread
            return
        if not data:
            return
        if standard_stream._stream.cell_id is None:
            # Between cells, output to the descriptor goes to the server's log.
            os.write(standard_stream._original_fd, data)
        elif text := decode(data):
            standard_stream.write(text)
        standard_stream._forwarded_bytes = getattr(standard_stream, "_forwarded_bytes", 0) + len(data)
        standard_stream._is_forwarding = False


def _drain_after(pause):
    def pause_and_drain(self):
        stdio.flush(getattr(self.standard_stream, "buffer", None))
        pause(self)
        # A child that outlives its cell may write without end. The text written so far is at most the pipe's content and one read.
        enough = _forwarded_bytes(self) + _unread_bytes(self) + READ_BYTES
        limit = time.monotonic() + DRAIN_LIMIT_S
        while _is_on_its_way(self) and _forwarded_bytes(self) < enough and time.monotonic() < limit:
            time.sleep(DRAIN_POLL_S)

    return pause_and_drain


def _forwarded_bytes(watcher):
    return getattr(watcher.standard_stream, "_forwarded_bytes", 0)


def _unread_bytes(watcher):
    unread = array.array("i", [0])
    fcntl.ioctl(watcher.read_fd, termios.FIONREAD, unread)
    return unread[0]


def _is_on_its_way(watcher):
    """Returns whether output that was written to the descriptor has not reached the cell yet."""
    return _unread_bytes(watcher) > 0 or getattr(watcher.standard_stream, "_is_forwarding", False)
