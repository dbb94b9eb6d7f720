"""Frames of pandas from columns: the same that pandas makes of the same rows."""

import datetime

import pandas

TEXTS = pandas.Series(["text"]).array  # pandas decides by its version and options which array texts get
MOMENTS = pandas.Series([datetime.datetime(2026, 1, 1)]).dtype


def frame_of(names, columns, coerce_float):
    """Returns the DataFrame that `DataFrame.from_records` makes of the rows of `columns`."""
    made, listed = {}, {}
    for index, column in enumerate(columns.columns):
        array = _array_of(column) if column.has_values() else None
        if array is None:
            listed[index] = column.to_list()
        else:
            made[index] = array
    if listed:
        rows = list(zip(*listed.values()))
        frame = pandas.DataFrame.from_records(rows, columns=list(listed), coerce_float=coerce_float)
        made |= {index: frame[index] for index in listed}
    frame = pandas.DataFrame({index: made[index] for index in sorted(made)}, copy=False)
    frame.columns = names
    return frame


def _array_of(column):
    """Returns the array that pandas makes of the values of a packed column; None if only pandas can make it."""
    match column.kind:
        case "text":
            if not isinstance(TEXTS, pandas.arrays.ArrowStringArray):
                return None
            return type(TEXTS)(column.to_arrow(), dtype=TEXTS.dtype)
        case "timestamp" | "timestamptz" if MOMENTS != "M8[us]":
            return None
        case "date":
            return None
    values, nulls = column.to_numpy(), column.find_nulls()
    if nulls is not None:
        values = values.astype({"boolean": object, "integer": float}.get(column.kind, values.dtype))
        values[nulls] = {"boolean": None, "timestamp": "NaT", "timestamptz": "NaT"}.get(column.kind, float("nan"))
    return pandas.DatetimeIndex(values, tz=datetime.UTC) if column.kind == "timestamptz" else values
