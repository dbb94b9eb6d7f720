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
    "integer": lambda value: int(value) if isinstance(value, str) else value,  # beyond what a float holds: text
    "float": float,  # 1.0 travels as 1, and what is not finite as text
    "decimal": decimal.Decimal,
    "bytes": base64.b64decode,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamp,
    "uuid": uuid.UUID,
    "json": json.loads,
}


def read_rows(rows, types) -> list:
    """Rows as tuples. A value that Python cannot hold, such as a date before year 1, stays text."""
    readers = [(index, READERS[kind]) for index, kind in enumerate(types) if kind in READERS]
    if not rows or not readers:
        return list(map(tuple, rows))
    columns = list(zip(*rows))
    for index, reader in readers:
        columns[index] = [None if value is None else _read(reader, value) for value in columns[index]]
    return list(zip(*columns))


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
