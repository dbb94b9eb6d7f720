"""Cells as they travel, turned into Python values: what JSON has no value for comes as text."""

import base64
import datetime
import decimal
import json
import uuid


def _date(text):
    return datetime.date.fromisoformat(text)


def _time(text):
    return datetime.time.fromisoformat(text)


def _timestamp(text):
    return datetime.datetime.fromisoformat(text)


READERS = {
    "integer": int,
    "float": float,
    "decimal": decimal.Decimal,
    "bytes": base64.b64decode,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamp,
    "uuid": uuid.UUID,
    "json": json.loads,
}
# what most values of a column are already: an integer is text only beyond what JSON holds, a float is not when it is 1
AS_THEY_ARE = {"integer": int, "float": float}


def read_rows(rows, types) -> list:
    """Rows as tuples. A value that Python cannot hold, such as a date before year 1, stays text."""
    special = [(index, kind) for index, kind in enumerate(types) if kind in READERS]
    if not rows or not special:
        return list(map(tuple, rows))
    columns = list(zip(*rows))
    for index, kind in special:
        columns[index] = _read_column(columns[index], kind)
    return list(zip(*columns))


def _read_column(column, kind):
    found = set(map(type, column))
    if found <= {AS_THEY_ARE.get(kind), type(None)}:
        return column
    reader = READERS[kind]
    if type(None) not in found:
        try:
            return list(map(reader, column))
        except (ValueError, ArithmeticError, OverflowError):
            pass  # one of them: which, is for the slow way to find
    return [None if value is None else _read(reader, value) for value in column]


def _read(reader, value):
    try:
        return reader(value)
    except (ValueError, ArithmeticError, OverflowError):
        return value


def write_parameter(value):
    """A parameter as it travels; TypeError for what no database takes."""
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int):
        return value if -(2**53) < value < 2**53 else {"integer": str(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, (datetime.date, datetime.time, decimal.Decimal, uuid.UUID)):
        return str(value)
    if hasattr(value, "item"):  # a scalar of numpy
        return write_parameter(value.item())
    raise TypeError(f"a parameter cannot be {type(value).__name__}")
