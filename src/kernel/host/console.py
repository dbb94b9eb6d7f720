"""What cells print, on its way to the server: marimo's console without its faults.

- marimo adds every printed string to the one before it (10 MiB of small lines take seconds): here they are joined once per batch.
- marimo makes an object and wakes a thread for each write: here a write joins the last one of its kind.
- marimo queues without bound when the server does not read: here print() waits, and an interrupt ends that wait.
- marimo waits for its writer after every cell, two changes of thread: here only when something was printed.
- marimo stops forwarding what subprocesses print at the first character that two reads share: here decoding spans reads.

The rest is as it was: one batch every 10 ms, at once when the kernel asks for it, and what is merged is of one cell, stream, kind,
run and execution.
"""

import codecs
import collections
import os
import time

from marimo._messaging import streams
from marimo._messaging.cell_output import CellChannel
from marimo._messaging.console_output_worker import TIMEOUT_S, ConsoleMsg, FlushMarker, _write_console_output
from marimo._messaging.context import RUN_ID_CTX, execution_id_for

SHORT_CHARS = 1 << 14               # a longer write may be over marimo's limit for one write, and goes marimo's way
BATCH_LIMIT_CHARS = 1 << 18         # a batch this long is sent without waiting for more
UNSENT_LIMIT_CHARS = 1 << 22        # print() waits while more than this has not reached the socket
READ_BYTES = 1 << 16


class Printed:
    """Consecutive writes of one kind, see kind_of()."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind, text):
        self.kind = kind
        self.parts = [text]


def kind_of(message):
    return (message.cell_id, message.stream, message.mimetype, message.run_id, message.execution_id)


class Messages(collections.deque):
    """The queue between print() and the writer; only touched under marimo's condition."""

    def __init__(self):
        super().__init__()
        self.waiting_chars = 0      # in the queue
        self.unsent_chars = 0       # in the queue and on the way to the socket

    def append(self, message):
        """What marimo puts here itself: long writes, prompts, markers and the end."""
        if isinstance(message, ConsoleMsg):
            self.add(kind_of(message), message.data)
        else:
            super().append(message)

    def add(self, kind, text) -> bool:
        """Whether the writer has to be woken for it."""
        empty = not self
        if not empty and type(last := self[-1]) is Printed and last.kind == kind:
            last.parts.append(text)
        else:
            super().append(Printed(kind, text))
        self.unsent_chars += len(text)
        self.waiting_chars += len(text)
        return empty or self.waiting_chars > BATCH_LIMIT_CHARS


def install():
    """Replaces marimo's console in kernels that start from here on."""
    streams.deque = Messages
    streams.buffered_writer = write_batches
    streams._forward_os_stream = forward_file_descriptor
    for stream, channel in ((streams.ThreadSafeStdout, CellChannel.STDOUT), (streams.ThreadSafeStderr, CellChannel.STDERR)):
        stream._write_with_mimetype = _write_with_mimetype(stream._write_with_mimetype, channel)
    streams.ThreadSafeStream.flush_console = _flush_if_needed(streams.ThreadSafeStream.flush_console)


def _write_with_mimetype(write_long, channel):
    def write_with_mimetype(self, data, mimetype):
        stream = self._stream
        messages = stream.console_msg_queue
        if messages.unsent_chars > UNSENT_LIMIT_CHARS:
            with stream.console_msg_cv:
                stream.console_msg_cv.wait_for(lambda: _has_room(stream))
        cell_id = stream.cell_id
        if type(data) is not str or len(data) > SHORT_CHARS or cell_id is None:
            return write_long(self, data, mimetype)
        kind = (cell_id, channel, mimetype, RUN_ID_CTX.get(None), execution_id_for(cell_id))
        with stream.console_msg_cv:
            if messages.add(kind, data):
                stream.console_msg_cv.notify()
        return len(data)

    return write_with_mimetype


def _has_room(stream):
    return stream.console_msg_queue.unsent_chars <= UNSENT_LIMIT_CHARS or not stream.buffered_console_thread.is_alive()


def _flush_if_needed(flush):
    def flush_console(self):
        if self.redirect_console and self.console_msg_queue.unsent_chars:
            flush(self)

    return flush_console


def write_batches(messages, stream, arrived):
    """The console writer's thread: drains `messages`, guarded by the condition `arrived`, until a None comes."""
    while True:
        batch, marker, ends = _gather_batch(messages, arrived)
        size = 0
        for (cell_id, channel, mimetype, run_id, execution_id), parts in batch:
            text = "".join(parts)
            size += len(text)
            _write_console_output(stream, channel, cell_id, text, mimetype, run_id, execution_id)
        with arrived:
            messages.unsent_chars -= size
            arrived.notify_all()
        if marker is not None:
            marker.done.set()
        if ends:
            return


def _gather_batch(messages, arrived):
    """Waits for a first message, then up to 10 ms for more. Answers ([(kind, [text…])…], flush marker, end)."""
    batch, last, deadline = [], {}, None
    with arrived:
        while True:
            full = messages.waiting_chars > BATCH_LIMIT_CHARS
            while messages:
                message = messages.popleft()
                if message is None or isinstance(message, FlushMarker):
                    return batch, message, message is None
                cell_id = message.kind[0]
                if cell_id in last and last[cell_id][0] == message.kind:
                    last[cell_id][1].extend(message.parts)
                else:
                    last[cell_id] = (message.kind, message.parts)
                    batch.append(last[cell_id])
                messages.waiting_chars -= sum(map(len, message.parts))
            if batch and deadline is None:
                deadline = time.monotonic() + TIMEOUT_S
            remaining = None if deadline is None else deadline - time.monotonic()
            if full or remaining is not None and remaining <= 0:
                return batch, None, False
            arrived.wait(remaining)


def forward_file_descriptor(standard_stream, fd, should_exit):
    """A watcher's thread: what subprocesses and C code write to fd 1 or 2 goes to the cell that runs, or else to the log."""
    decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
    while not should_exit.is_set():
        try:
            data = os.read(fd, READ_BYTES)
        except OSError:             # marimo closes the pipe to end this thread
            return
        if not data:
            return
        if standard_stream._stream.cell_id is None:
            os.write(standard_stream._original_fd, data)        # the log: between cells that descriptor is the kernel's own again
        elif text := decode(data):
            standard_stream.write(text)
