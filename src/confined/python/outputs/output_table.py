"""The first rows of a table that a cell shows, as JSON, and the number of its rows.

Only tables of known libraries that are in memory already: nothing is computed. The only code of the notebook that
runs is `str` of values that JSON does not have.
"""

import datetime
import math
import sys

MAX_ROWS = 100
MAX_COLUMNS = 100
MAX_CHARS = 64_000
MAX_CELL_CHARS = 1000
MAX_DEPTH = 4
MAX_ITEMS = 50
SAFE_INTEGER = 2**53 - 1


def describe(value) -> dict | None:
    """Returns {"columns": [{"name", "type"}], "rows": [[…]], "rowCount", "columnCount"}, or None for a value that is
    not a table. Values that JSON lacks, such as integers beyond 2**53, decimals and dates, are text; NaN and missing
    values are null."""
    value = getattr(getattr(value, "_searched_manager", None), "data", value)
    value = _unwrap(value)
    read = {"pandas": _read_pandas, "polars": _read_polars, "pyarrow": _read_arrow}.get(_library(value))
    found = read(value) if read else None
    if found is None:
        return None
    columns, rows, row_count, column_count = found
    table = {
        "columns": [{"name": _cut(str(name)), "type": _cut(str(kind), 200)} for name, kind in columns],
        "rows": [],
        "rowCount": row_count,
        "columnCount": column_count,
    }
    size = sum(len(column["name"]) + len(column["type"]) + 30 for column in table["columns"])
    for row in rows:
        plain = [_plain(item) for item in row]
        size += sum(map(_size, plain))
        if size > MAX_CHARS:
            break
        table["rows"].append(plain)
    return table


def _library(value):
    """Returns the library of the value's own type. A subclass may be the notebook's, so it does not
    count.
    """
    return type(value).__module__.partition(".")[0]


def _unwrap(value):
    """marimo holds tables as frames of narwhals."""
    return value.to_native() if _library(value) == "narwhals" and hasattr(value, "to_native") else value


def _read_pandas(value):
    pandas = sys.modules["pandas"]
    if type(value) is pandas.Series:
        value = value.to_frame("value" if value.name is None else value.name)
    if type(value) is not pandas.DataFrame:
        return None
    rows, columns = value.shape
    head = value.iloc[:MAX_ROWS, :MAX_COLUMNS]
    fields = list(zip(head.columns, head.dtypes, strict=True))
    lines = head.itertuples(index=False, name=None)
    if type(head.index) is pandas.RangeIndex and head.index.start == 0 and head.index.step == 1:
        return fields, lines, rows, columns
    names = ["index" if name is None else name for name in head.index.names]
    kinds = list(head.index.dtypes) if isinstance(head.index, pandas.MultiIndex) else [head.index.dtype]
    keys = ((key if isinstance(head.index, pandas.MultiIndex) else (key,)) for key in head.index)
    lines = (tuple(key) + line for key, line in zip(keys, lines, strict=True))
    return [*zip(names, kinds, strict=True), *fields], lines, rows, columns + len(names)


def _read_polars(value):
    polars = sys.modules["polars"]
    if type(value) is polars.Series:
        value = value.to_frame()
    if type(value) is not polars.DataFrame:
        return None
    head = value[:MAX_ROWS, :MAX_COLUMNS]
    return list(head.schema.items()), head.iter_rows(), value.height, value.width


def _read_arrow(value):
    if type(value) is not sys.modules["pyarrow"].Table:
        return None
    head = value.slice(0, MAX_ROWS).select(range(min(MAX_COLUMNS, value.num_columns)))
    columns = [column.to_pylist() for column in head.columns]
    fields = [(field.name, field.type) for field in head.schema]
    return fields, zip(*columns, strict=True), value.num_rows, value.num_columns


def _plain(value, depth=0):
    """Returns the value in a form that JSON can represent."""
    if value is None or value is True or value is False:
        return value
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, str):
        return _cut(str.__str__(value))
    if isinstance(value, int):
        return value if -SAFE_INTEGER <= value <= SAFE_INTEGER else _cut(str(value))
    if isinstance(value, float):
        return None if math.isnan(value) else value if math.isfinite(value) else "inf" if value > 0 else "-inf"
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, (datetime.date, datetime.time)):  # a datetime is a date, too
        return value.isoformat()
    if depth < MAX_DEPTH and isinstance(value, dict):
        members = list(value.items())[:MAX_ITEMS]
        return {_cut(str(key), 100): _plain(member, depth + 1) for key, member in members}
    if depth < MAX_DEPTH and isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value[:MAX_ITEMS]]
    return _cut(str(value))


def _size(value):
    if isinstance(value, str):
        return len(value) + 3
    if isinstance(value, dict):
        return sum(_size(key) + _size(member) for key, member in value.items()) + 2
    return sum(map(_size, value)) + 2 if isinstance(value, list) else 8


def _cut(text, limit=MAX_CELL_CHARS):
    return text if len(text) <= limit else f"{text[:limit]}…"
