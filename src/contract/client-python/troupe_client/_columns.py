"""
Columns of tables with their types. JSON lacks many values, which the server sends as text: integers beyond 2^53, infinity, decimals, dates
and times. The types are named as pandas, polars and Arrow name them.
"""

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

_TIME = re.compile(r"(?:datetime64\[|datetime\(time_unit='|timestamp\[)(ns|us|ms|s)(?:.*?(?:time_zone='|tz=|, )([\w/+:-]+)'?[\])])?", re.I)
_FLOATS = {"double": "float64", "float": "float32", "halffloat": "float16"}


def typed_column(pandas: Any, values: list[Any], type: str) -> Any:
    """Returns a series of the values with their type. A type that pandas lacks, or that the values do not fit, leaves them as they are."""
    try:
        return _typed(pandas, values, type)
    except (ArithmeticError, TypeError, ValueError):
        return pandas.Series(values, dtype=object)


def _typed(pandas: Any, values: list[Any], type: str) -> Any:
    name = type.lower()
    is_complete = None not in values
    if found := _TIME.match(type):
        unit, zone = found.groups()
        # Offsets differ when the clocks change, so the times are read in UTC.
        times = pandas.to_datetime(pandas.Series(values, dtype=object), utc=True, format="ISO8601").dt
        local = times.tz_convert(zone) if zone and zone != "None" else times.tz_localize(None)
        return local.dt.as_unit(unit)
    if re.fullmatch(r"u?int\d+", name):
        nullable = name.replace("uint", "UInt") if name.startswith("u") else name.replace("int", "Int")
        return pandas.Series(_each(values, int), dtype=type if is_complete else nullable)
    if re.fullmatch(r"float\d+|double|float|halffloat", name):
        return pandas.Series(_each(values, float), dtype=_FLOATS.get(name, type))
    if name in ("bool", "boolean"):
        return pandas.Series(values, dtype="bool" if type == "bool" and is_complete else "boolean")
    if name.startswith("decimal"):
        return pandas.Series(_each(values, Decimal), dtype=object)
    if name == "date" or name.startswith("date32") or name.startswith("date64"):
        return pandas.Series(_each(values, datetime.date.fromisoformat), dtype=object)
    if name == "time" or name.startswith("time32") or name.startswith("time64"):
        return pandas.Series(_each(values, datetime.time.fromisoformat), dtype=object)
    if name.startswith(("timedelta64", "duration")):
        unit = re.search(r"\b(ns|us|ms|s)\b", type)
        return pandas.to_timedelta(pandas.Series(values, dtype=object)).dt.as_unit(unit[1] if unit else "ns")
    if name == "category" or name.startswith(("categorical", "enum", "dictionary")):
        return pandas.Series(values, dtype="category")
    if name in ("string", "str", "large_string", "utf8"):
        return pandas.Series(values, dtype="str" if type == "str" else "string")
    return pandas.Series(values, dtype=object)


def _each(values: list[Any], read: Callable[[Any], Any]) -> list[Any]:
    return [None if value is None else read(value) for value in values]
