"""The encoding of rows of embedded databases. The server passes the bytes on to notebooks without decoding them.

One answer is

    "R" · u32le rows · a JSON array of rows

JSON has no value for large integers, infinities and bytes. Where the type of the column shows how to read its cells,
such a value is text (digits; Infinity, -Infinity, NaN; base64). SQLite keeps any value in any column, so there a
column is `byCell`: text is text, and these values are {"integer": digits}, {"float": "Infinity"} and {"bytes":
base64}.

Parameters come as JSON values, with {"integer": digits}, {"bytes": base64} and {"float": "2" or "NaN"}, so that none is taken
for another.
"""

import base64
import itertools
import struct

import msgspec

from engines.failure import EngineFailure

HEAD = struct.Struct("<cI")
MAX_SAFE = 2**53 - 1
MAX_ROW_BYTES = 16 * 1024 * 1024
PORTION_BYTES = 512 * 1024
PORTION_ROWS = 2048
MAX_GROUP = 256
EXPANSION = 8  # the JSON of a row has at least an eighth of the bytes that the row counts for
KINDS = {int: "integer", float: "float", bytes: "bytes"}
NOTHING = HEAD.pack(b"R", 0) + b"[]"


class Portions:
    """The rows of one statement in portions of a bounded size. `fetch(count)` returns that many
    of the next rows, or fewer at the end. `by_cell`: whether each cell carries its own type."""

    def __init__(self, fetch, by_cell):
        self._fetch = fetch
        self._by_cell = by_cell
        self._is_over = False

    def next(self) -> bytes:
        """Returns the next portion, encoded; without rows at the end. Raises EngineFailure `row_too_large`."""
        rows, parts, size, group = [], [], 0, 1
        while not self._is_over and len(rows) < PORTION_ROWS and size < PORTION_BYTES:
            count = min(group, PORTION_ROWS - len(rows))
            fetched = self._fetch(count)
            self._is_over = len(fetched) < count
            if not fetched:
                break
            body = encode_group(fetched)
            check_size(fetched, body)
            rows += fetched
            parts.append(body)
            size += len(body)
            # the number of rows that probably fit, estimated from the size of the rows so far
            likely = (PORTION_BYTES - size) * len(rows) // size
            group = max(1, min(group * 2, MAX_GROUP, likely))
        if not rows:
            return NOTHING
        exceptions = find_exceptions(rows)
        body = encode_exactly(rows, exceptions, self._by_cell) if exceptions else b"".join((b"[", b",".join(parts), b"]"))
        return HEAD.pack(b"R", len(rows)) + body


def encode_group(rows) -> bytes:
    """
    Returns rows, separated by commas. Values that JSON cannot represent are wrong in this text, and are corrected
    later.
    """
    try:
        return msgspec.json.encode(rows)[1:-1]
    except OverflowError:  # an integer beyond 64 bits, which is corrected later; here only its size counts
        return bytes(sum(map(row_bytes, rows)))


def check_size(rows, body):
    if len(body) > MAX_ROW_BYTES // EXPANSION and any(row_bytes(row) > MAX_ROW_BYTES for row in rows):
        raise EngineFailure("row_too_large")


def row_bytes(row):
    return sum(map(cell_bytes, row))


def cell_bytes(cell):
    if isinstance(cell, str):
        return len(cell) if cell.isascii() else len(cell.encode())
    return len(cell) if isinstance(cell, bytes) else 8


def find_exceptions(rows) -> set:
    """
    Returns the columns with a cell that JSON cannot express. Uses operations on whole columns, which are faster in
    Python than a step for each cell.
    """
    found = set()
    for at, column in enumerate(zip(*rows)):
        present = set(map(type, column))
        present.discard(type(None))
        if bytes in present or int in present and not is_safe(column, present) or float in present and not is_finite(column, present):
            found.add(at)
    return found


def is_safe(column, present):
    numbers = column if present == {int} and None not in column else [one for one in column if isinstance(one, int)]
    return max(numbers) <= MAX_SAFE and min(numbers) >= -MAX_SAFE


def is_finite(column, present):
    numbers = [one for one in column if isinstance(one, float)]
    total = sum(numbers)
    return total - total == 0  # false for infinities, NaN, and sums beyond the range of a float


def encode_exactly(rows, exceptions, by_cell) -> bytes:
    """Encodes the columns of `exceptions` cell by cell."""
    exact = []
    for row in rows:
        cells = list(row)
        for at in exceptions:
            text = exact_text(cells[at])
            if text is not None:
                cells[at] = {KINDS[type(cells[at])]: text} if by_cell else text
        exact.append(cells)
    return msgspec.json.encode(exact)


def exact_text(cell):
    """Returns the text that represents a number or bytes; None if JSON can represent the cell."""
    if isinstance(cell, bytes):
        return base64.b64encode(cell).decode()
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        return None
    if isinstance(cell, int):
        return str(cell) if abs(cell) > MAX_SAFE else None
    if cell != cell:
        return "NaN"
    return ("Infinity" if cell > 0 else "-Infinity") if cell in (float("inf"), float("-inf")) else None


def read_parameters(parameters) -> list:
    return [read_parameter(one) for one in parameters]


def read_parameter(value):
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    return int(value["integer"]) if "integer" in value else base64.b64decode(value["bytes"])


def take(rows, count) -> list:
    """Returns that many rows of an iterator, fewer at its end."""
    return list(itertools.islice(rows, count))
