"""The rows of one result by columns, as the server packs them for frames (src/datasource/rows.ts says how).

A column whose values all came packed is an array. Any other column is a list of the values that its rows would have, so
that a frame has the same values in both ways.
"""

import datetime

import numpy
import pyarrow

from troupe.values import RowReader

SIZES = {"boolean": 1, "integer": 8, "float": 8, "date": 4, "timestamp": 8, "timestamptz": 8}
# how the bytes of an array are read
NUMBERS = {"boolean": "<u1", "integer": "<i8", "float": "<f8", "date": "<i4", "timestamp": "<i8", "timestamptz": "<i8"}
ARROW = {
    "integer": pyarrow.int64(),
    "float": pyarrow.float64(),
    "date": pyarrow.date32(),
    "timestamp": pyarrow.timestamp("us"),
    "timestamptz": pyarrow.timestamp("us", "UTC"),
}
TRUE, NULL_BOOLEAN = 1, 2


class Columns:
    """The columns of a result, which grow with each batch."""

    def __init__(self, kinds):
        self.columns = [Column(kind) for kind in kinds]
        self.count = 0  # rows
        self._readers = {}  # the indexes of columns that came as JSON -> their reader

    def add(self, count, forms, body):
        """Adds a batch of `count` rows. `forms`: how `body` has each column."""
        at = 0
        for column, form in zip(self.columns, forms, strict=True):
            if form != "rows":
                at = column.add(count, form, body, at)
        others = tuple(index for index, form in enumerate(forms) if form == "rows")
        if others:
            self._add_rows(others, body[at:])
        self.count += count

    def _add_rows(self, indexes, json):
        reader = self._readers.get(indexes)
        if reader is None:
            reader = self._readers[indexes] = RowReader([self.columns[index].kind for index in indexes])
        rows = reader.read(json)
        for at, (index, values) in enumerate(zip(indexes, zip(*rows))):
            self.columns[index].extend(values, at in reader.mixed)


class Column:
    """One column. `values` is the list of its values; None while all of them are packed."""

    def __init__(self, kind):
        self.kind = kind
        self.values = None
        self.is_mixed = False  # whether a value stayed text, so that all of them become text
        self._count = 0
        self._data = bytearray()
        self._lengths = bytearray()  # of texts
        self._marks = None  # a byte for each row, 1 for null; None while there is no null

    def add(self, count, form, body, at) -> int:
        """Adds the packed array that begins at `at`, and returns where it ends."""
        if self.values is not None:
            part = Column(self.kind)
            end = part.add(count, form, body, at)
            self.values += part.to_list()
            return end
        if self.kind == "text":
            return self._add_texts(count, body, at)
        if form.endswith("?") and self.kind != "boolean":
            if self._marks is None:
                self._marks = bytearray(self._count)
            self._marks += body[at : at + count]
            at += count
        elif self._marks is not None:
            self._marks += bytes(count)
        end = at + count * SIZES[self.kind]
        self._data += body[at:end]
        self._count += count
        return end

    def _add_texts(self, count, body, at):
        start = at + 4 * count
        lengths = numpy.frombuffer(body[at:start], "<i4")
        end = start + int(numpy.maximum(lengths, 0).sum(dtype="i8"))
        self._lengths += body[at:start]
        self._data += body[start:end]
        self._count += count
        return end

    def extend(self, values, is_mixed):
        """Adds values that did not come packed."""
        if self.values is None:
            self.values = self.to_list()
            self._data = self._lengths = self._marks = None
        self.values += values
        self.is_mixed = self.is_mixed or is_mixed

    def has_values(self) -> bool:
        """Returns whether the column is packed and not all of it is null: frames guess the type of an empty column by themselves."""
        if self.values is not None or self._count == 0:
            return False
        nulls = self.find_nulls()
        return nulls is None or not nulls.all()

    def to_list(self) -> list:
        """Returns the values that rows would have."""
        if self.values is not None:
            if self.is_mixed:
                return [value.isoformat() if hasattr(value, "isoformat") else value for value in self.values]
            return self.values
        if self._count == 0:
            return []
        if self.kind == "text":
            return self._texts_to_list()
        values = self.to_numpy().tolist()
        if self.kind == "timestamptz":
            values = [value.replace(tzinfo=datetime.UTC) for value in values]
        nulls = self.find_nulls()
        for index in () if nulls is None else nulls.nonzero()[0].tolist():
            values[index] = None
        return values

    def _texts_to_list(self):
        data, at, values = bytes(self._data), 0, []
        for length in numpy.frombuffer(self._lengths, "<i4").tolist():
            values.append(None if length < 0 else data[at : at + length].decode())
            at += max(length, 0)
        return values

    def find_nulls(self):
        """Returns which rows of a packed column are null, as an array of booleans; None when none is."""
        if self.kind == "boolean":
            nulls = numpy.frombuffer(self._data, "u1") == NULL_BOOLEAN
        elif self.kind == "text":
            nulls = numpy.frombuffer(self._lengths, "<i4") < 0
        elif self._marks is None:
            return None
        else:
            nulls = numpy.frombuffer(self._marks, "u1") == 1
        return nulls if nulls.any() else None

    def to_numpy(self):
        """Returns an array of the packed column, whose memory it shares. A null in it is any value. Texts have none."""
        found = numpy.frombuffer(self._data, NUMBERS[self.kind])
        if self.kind == "boolean":
            return found == TRUE
        if self.kind == "date":
            return found.astype("M8[D]")
        return found.view("M8[us]") if self.kind.startswith("timestamp") else found

    def to_arrow(self):
        """Returns an array of the packed column, whose memory it shares where Arrow has the same form."""
        nulls = self.find_nulls()
        present = None if nulls is None else _bits(~nulls)
        if self.kind == "text":
            offsets = numpy.zeros(self._count + 1, "i8")
            numpy.cumsum(numpy.maximum(numpy.frombuffer(self._lengths, "<i4"), 0), out=offsets[1:])
            buffers = [present, pyarrow.py_buffer(offsets), pyarrow.py_buffer(self._data)]
            return pyarrow.Array.from_buffers(pyarrow.large_string(), self._count, buffers)
        if self.kind == "boolean":
            return pyarrow.Array.from_buffers(pyarrow.bool_(), self._count, [present, _bits(self.to_numpy())])
        return pyarrow.Array.from_buffers(ARROW[self.kind], self._count, [present, pyarrow.py_buffer(self._data)])


def _bits(flags):
    return pyarrow.py_buffer(numpy.packbits(flags, bitorder="little"))
