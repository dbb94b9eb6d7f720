"""Orders as the zygote reads them: lines in one buffer of a fixed size.

Every kernel that is forked later inherits this process's memory. So an order is erased as soon as it was carried out.
The part of it that belongs to one kernel (its socket and its token) is never copied out of the buffer here.
"""

import os

MAX_ORDER_BYTES = 1 << 16
_ZEROS = bytes(4096)


class Inbox:
    """Reads lines from a descriptor. Each byte is searched once and moved at most once, for lines of any size."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._buffer = bytearray(2 * MAX_ORDER_BYTES)
        self._view = memoryview(self._buffer)
        self._end = 0  # the end of the bytes read
        self._searched = 0
        self._is_skipping = False  # whether the rest of a line that is too long is being skipped

    def read(self) -> bool:
        """Reads the available bytes. Returns False at the end of the input. Call it after `lines` has yielded all."""
        count = os.readv(self._descriptor, [self._view[self._end :]])
        self._end += count
        return count > 0

    def lines(self):
        """Yields each complete line as a view, which is erased when the next one is requested; yields None for a line
        of more than MAX_ORDER_BYTES."""
        start = 0
        try:
            while (at := self._buffer.find(b"\n", self._searched, self._end)) >= 0:
                line_start, start = start, at + 1
                self._searched = start
                is_too_long = self._is_skipping or at - line_start > MAX_ORDER_BYTES
                self._is_skipping = False
                yield None if is_too_long else self._view[line_start:at]
                self._erase(line_start, start)
        finally:
            self._keep_from(start)

    def erase(self):
        """Erases everything. Called in a child, which inherits orders for others."""
        self._erase(0, self._end)

    def _keep_from(self, start):
        """Moves the beginning of the next line to the front of the buffer, or discards it when it is too long."""
        rest = self._end - start
        if rest > MAX_ORDER_BYTES:
            self._is_skipping, rest = True, 0
        elif start > 0 and rest > 0:
            self._buffer[:rest] = self._view[start : self._end]
        self._erase(rest, self._end)
        self._end = self._searched = rest

    def _erase(self, start, end):
        for at in range(start, end, len(_ZEROS)):
            stop = min(at + len(_ZEROS), end)
            self._view[at:stop] = _ZEROS[: stop - at]
