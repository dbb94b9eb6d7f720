"""What cells print, on its way to the server: marimo's console writer without its faults.

- marimo adds every printed string to the one before it (10 MiB of small lines take seconds): ours joins a batch once.
- marimo queues without bound when the server does not read: ours makes print() wait, and an interrupt ends that wait.
- marimo waits for its writer after every cell, two changes of thread: ours only when something was printed.
- marimo stops forwarding what subprocesses print at the first character that two reads share: ours decodes across reads.

The rest is as it was: one batch every 10 ms, at once when the kernel asks for it, and the parts of a batch are merged only when
they are of one cell, stream, kind, run and execution.
"""

import codecs
import collections
import os
import time

from marimo._messaging import streams
from marimo._messaging.console_output_worker import TIMEOUT_S, FlushMarker, _write_console_output

BATCH_LIMIT_CHARS = 1 << 18         # a batch this long is sent without waiting for more
UNSENT_LIMIT_CHARS = 1 << 22        # print() waits while more than this has not reached the socket
READ_BYTES = 1 << 16


class Messages(collections.deque):
    """The queue between print() and the writer; counts what has not reached the socket. Only touched under marimo's condition."""

    unsent_chars = 0

    def append(self, message):
        self.unsent_chars += len(getattr(message, "data", ""))
        super().append(message)


def install():
    """Replaces marimo's writer and forwarder in kernels that start from here on."""
    streams.deque = Messages
    streams.buffered_writer = write_batches
    streams._forward_os_stream = forward_file_descriptor
    for kind in (streams.ThreadSafeStdout, streams.ThreadSafeStderr):
        kind._write_with_mimetype = _wait_before(kind._write_with_mimetype)
    streams.ThreadSafeStream.flush_console = _flush_if_needed(streams.ThreadSafeStream.flush_console)


def _wait_before(write):
    def write_with_mimetype(self, data, mimetype):
        stream = self._stream
        if stream.console_msg_queue.unsent_chars > UNSENT_LIMIT_CHARS:
            with stream.console_msg_cv:
                stream.console_msg_cv.wait_for(lambda: _has_room(stream))
        return write(self, data, mimetype)

    return write_with_mimetype


def _has_room(stream):
    return stream.console_msg_queue.unsent_chars <= UNSENT_LIMIT_CHARS or not stream.buffered_console_thread.is_alive()


def _flush_if_needed(flush):
    def flush_console(self):
        if self.redirect_console and (self.console_msg_queue.unsent_chars or self.console_msg_queue):
            flush(self)

    return flush_console


def write_batches(messages, stream, arrived):
    """The console writer's thread: drains the deque `messages`, guarded by the condition `arrived`, until a None comes."""
    while True:
        batch, marker, ends = _gather_batch(messages, arrived)
        size = 0
        for first, parts in batch:
            text = "".join(parts)
            size += len(text)
            _write_console_output(
                stream, first.stream, first.cell_id, text, first.mimetype, first.run_id, first.execution_id
            )
        if size:
            with arrived:
                messages.unsent_chars -= size
                arrived.notify_all()
        if marker is not None:
            marker.done.set()
        if ends:
            return


def _gather_batch(messages, arrived):
    """Waits for a first message, then up to 10 ms for more. Answers ([(first message, [text…])…], flush marker, end)."""
    batch, last, size, deadline = [], {}, 0, None
    with arrived:
        while True:
            while messages:
                message = messages.popleft()
                if message is None:
                    return batch, None, True
                if isinstance(message, FlushMarker):
                    return batch, message, False
                kind = (message.stream, message.mimetype, message.run_id, message.execution_id)
                known = last.get(message.cell_id)
                if known is not None and known[0] == kind:
                    known[1].append(message.data)
                else:
                    parts = [message.data]
                    last[message.cell_id] = (kind, parts)
                    batch.append((message, parts))
                size += len(message.data)
                if size >= BATCH_LIMIT_CHARS:
                    return batch, None, False
            if batch and deadline is None:
                deadline = time.monotonic() + TIMEOUT_S
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
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
            _log(standard_stream, data)
        elif text := decode(data):
            standard_stream.write(text)


def _log(standard_stream, data):
    """Between cells the descriptor is the kernel's own log again; a process that a cell left behind still writes to the pipe."""
    os.write(standard_stream._original_fd, data)
