"""The kernel's end of its socket, with the interface of the queue into which marimo puts its notifications.

Every write blocks while the server does not read: that is the back-pressure on a cell that prints faster than the
server reads. Notifications that marimo's main thread makes between two pieces of notebook code are gathered, and sent
together. Nothing is held back while notebook code runs. Before another thread sends something, it sends everything
gathered, in order.
"""

import struct
import threading
import time

import msgspec
from marimo._runtime.context.types import safe_get_context
from marimo._utils.signals import SigintHandler

from frames import FROM_KERNEL, LIMITS, find_excess, frame
from kernel.page_state import PageState


def _running_cell():
    """Returns the cell whose code runs in this thread; None when there is none."""
    context = safe_get_context()
    return None if context is None else context.cell_id


def _beginnings(names):
    return tuple(f'{{"op":"{name}"'.encode() for name in names.split())


# The notifications that the server reads, in addition to answers to its requests.
READ = _beginnings(
    """
    cell-op execution completed-run interrupted variables notebook-document-transaction missing-package-alert
    completion-result function-call-result
    """
)
# The notifications that only pages in a browser read: values of notebook code in arbitrary shapes and sizes. They are sent
# while a page follows the notebook.
FOLLOWED = _beginnings(
    """
    send-ui-element-message model-lifecycle remove-ui-elements variable-values datasets
    data-source-connections data-column-preview query-params-set query-params-append query-params-delete
    query-params-clear storage-namespaces sql-table-preview sql-table-list-preview sql-schema-list-preview
    validate-sql-result focus-cell
    """
)
(MODEL,) = _beginnings("model-lifecycle")
PAGE = struct.Struct("<I")
GATHERED_LIMIT_BYTES = 1 << 15
GATHERED_LIMIT_S = 0.002


class MessageTooLarge(Exception):
    """Raised instead of sending a message for which the server would end this kernel. Its text names the limit."""


class Outbox:
    """The connection through which messages reach the server. Owned by one kernel process, and safe
    to use from each of its threads.
    """

    def __init__(self, sock, limits=LIMITS):
        self._sock = sock
        self._limits = limits
        self._lock = threading.Lock()
        self._parts = []
        self._size = 0
        self._since = 0.0
        self._gathering = False
        self._is_followed = False
        self._page_state = PageState()

    def put(self, data, block=True, timeout=None):
        """
        Takes one encoded notification from marimo, which has deferred interrupts already. Discards notifications that
        the server does not read or would refuse.
        """
        if not data.startswith(READ):
            if not data.startswith(FOLLOWED):
                return
            cell_id = _running_cell() if data.startswith(MODEL) else None
            with self._lock:
                self._page_state.take(data, cell_id)
            if not self._is_followed:
                return
        if find_excess(data, self._limits):
            return
        with self._lock:
            self._parts.append(frame(FROM_KERNEL, data))
            self._size += len(data)
            if not self._may_wait():
                self._send()

    put_nowait = put

    def say(self, **message):
        """Sends one of our own messages at once. Raises MessageTooLarge, and sends nothing, when it is too large for
        the server."""
        json = msgspec.json.encode(message)
        if excess := find_excess(json, self._limits):
            raise MessageTooLarge(excess)
        with SigintHandler.defer(), self._lock:  # an interrupt within a frame would leave the frame incomplete
            self._parts.append(frame(FROM_KERNEL, json))
            self._send()

    def follow(self, body):
        """Begins to send the notifications that pages read, after the state that a new page needs; called by the reader
        thread. `body` is the number of the page; 0 ends the sending."""
        (page,) = PAGE.unpack(body)
        with SigintHandler.defer(), self._lock:
            self._is_followed = page != 0
            if page == 0:
                return
            mark = {"op": "bridge-page-state", "page": page}
            state = [data for data in self._page_state.messages() if not find_excess(data, self._limits)]
            marks = [msgspec.json.encode({**mark, "is_over": is_over}) for is_over in (False, True)]
            self._parts += [frame(FROM_KERNEL, data) for data in (marks[0], *state, marks[1])]
            self._send()

    def note_write(self, model, message, buffers):
        """Keeps a page's change of a widget for pages that open later."""
        with SigintHandler.defer(), self._lock:
            self._page_state.take_write(model, message, buffers)

    def save_widgets(self):
        """Sends the state of widgets that is saved with the outputs of cells, if it has changed. Returns the widgets that
        are newly too large for that: (cell, bytes) of each."""
        with SigintHandler.defer(), self._lock:
            unsaved = self._page_state.take_unsaved()
            if unsaved is None:
                return []
            state, too_large = unsaved
            json = msgspec.json.encode({"op": "bridge-widgets", "widgets": state.decode()})
            self._parts.append(frame(FROM_KERNEL, json))
            self._send()
            return too_large

    def gather(self):
        """Holds back the main thread's notifications until release()."""
        self._gathering = True

    def release(self):
        """Sends the gathered notifications; later ones are sent at once. Called before notebook code runs."""
        self._gathering = False
        if self._parts:
            with SigintHandler.defer(), self._lock:
                self._send()

    def _may_wait(self):
        if not self._gathering or self._size > GATHERED_LIMIT_BYTES:
            return False
        if threading.current_thread() is not threading.main_thread():
            return False
        now = time.monotonic()
        if len(self._parts) == 1:
            self._since = now
        return now - self._since < GATHERED_LIMIT_S

    def cut_off(self):
        """Discards all messages from now on. Called in a fork, because another thread may have left
        the lock taken.
        """
        self._sock, self._lock, self._parts, self._size = None, threading.Lock(), [], 0

    def _send(self):
        data, self._parts, self._size = b"".join(self._parts), [], 0
        if data and self._sock is not None:
            self._sock.sendall(data)
