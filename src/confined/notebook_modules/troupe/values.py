"""Turns cells of query results into Python values. Values that JSON cannot express come as text."""

import base64
import datetime
import decimal
import json
import math
import uuid
from typing import Any

import msgspec

# The types of values by column type. Values of any other type are decoded one by one.
TYPES = {
    "boolean": bool,
    "integer": int,
    "float": float,
    "decimal": decimal.Decimal,
    "text": str,
    "bytes": bytes,
    "date": datetime.date,
    "time": datetime.time,
    "timestamp": datetime.datetime,
    "timestamptz": datetime.datetime,
    "uuid": uuid.UUID,
}
READERS = {
    "integer": int,
    "float": float,
    "decimal": decimal.Decimal,
    "bytes": base64.b64decode,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
    "timestamptz": datetime.datetime.fromisoformat,
    "uuid": uuid.UUID,
    "json": json.loads,
}

BY_CELL = "by cell"
FRAMED = {"date", "time", "timestamp", "timestamptz"}  # frames have types of their own for them


class RowReader:
    """Reads the rows of one result, as tuples. A value that Python cannot hold, such as a date before year 1, stays text."""

    def __init__(self, kinds):
        """`kinds`: the types of the columns; BY_CELL for a column whose cells each have a type of their own."""
        self._kinds = kinds
        self.mixed = set()  # the indexes of columns in which a value stayed text
        columns = tuple((TYPES[kind] | None) if kind in TYPES else Any for kind in kinds)
        # Not strict: whole numbers that some JSON readers would round come as text, and so does
        # not-a-number.
        self._decoder = msgspec.json.Decoder(list[tuple[columns]], strict=False)
        self._late = [(index, READERS[kind]) for index, kind in enumerate(kinds) if kind in READERS and kind not in TYPES]

    def read(self, rows) -> list:
        """`rows` is a JSON array of arrays."""
        try:
            found = self._decoder.decode(rows)
        except msgspec.ValidationError:
            return self._read_slowly(msgspec.json.decode(rows))
        return self._read_columns(found, self._late)

    def _read_slowly(self, rows):
        return self._read_columns(rows, [(index, READERS[kind]) for index, kind in enumerate(self._kinds) if kind in READERS])

    def _read_columns(self, rows, readers):
        if not rows or not readers:
            return rows if not rows or isinstance(rows[0], tuple) else list(map(tuple, rows))
        columns = list(zip(*rows))
        for index, reader in readers:
            if reader is not _read_marked or dict in set(map(type, columns[index])):
                columns[index] = [None if value is None else self._read_value(index, reader, value) for value in columns[index]]
        return list(zip(*columns))

    def _read_value(self, index, reader, value):
        try:
            return reader(value)
        except (TypeError, ValueError, ArithmeticError):
            if self._kinds[index] in FRAMED:
                self.mixed.add(index)
            return value

    def unify(self, rows) -> list:
        """Returns the rows with only text in each column in which a value stayed text: frames have one type for each column."""
        if not self.mixed or not rows:
            return rows
        columns = list(zip(*rows))
        for index in self.mixed:
            columns[index] = [value.isoformat() if hasattr(value, "isoformat") else value for value in columns[index]]
        return list(zip(*columns))


def _read_marked(value):
    """Returns a cell of a column of SQLite, where values that JSON lacks are marked with their kind."""
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    return READERS[kind](text)


READERS[BY_CELL] = _read_marked


def _write_float(value):
    """Returns the JSON form of a float. The server's JSON has only one kind of number, so the
    server would mistake 2.0 for the integer 2.
    """
    if math.isnan(value):
        return {"float": "NaN"}
    if math.isinf(value):
        return {"float": "Infinity" if value > 0 else "-Infinity"}
    return {"float": value} if value.is_integer() else value


def _is_not_a_time(value):
    """Whether this is the NaT of pandas, which is a datetime and equals nothing."""
    return isinstance(value, datetime.date) and value != value


def write_parameter(value):
    """Returns a parameter in its JSON form. Raises TypeError for a value that no database
    accepts. Values of derived types, such as numpy.float64 and numpy.str_, become plain ones,
    because msgspec encodes no others."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return _write_float(float(value))
    if isinstance(value, int):
        value = int(value)
        return value if -(2**53) < value < 2**53 else {"integer": str(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, (datetime.date, datetime.time, decimal.Decimal, uuid.UUID)):
        return None if _is_not_a_time(value) else str(value)
    if getattr(getattr(value, "dtype", None), "kind", None) == "M":  # a numpy.datetime64 with nanoseconds would become an integer
        return write_parameter(value.astype("datetime64[us]").item())
    if hasattr(value, "item"):  # numpy's scalars have `item`
        return write_parameter(value.item())
    raise TypeError(f"a parameter cannot be {type(value).__name__}")
