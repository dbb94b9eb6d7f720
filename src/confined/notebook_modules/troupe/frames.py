"""Datasources in pandas and polars, which know by their names the drivers that they support.

polars gets frames with a type for each column; from rows it cannot tell the scale of decimals. pandas writes frames in
the words of the database (writing.py): for a driver that it does not know it uses those of SQLite.
"""

import datetime
import json

from troupe.after_import import after_import
from troupe.values import BY_CELL

_is_supported = False


def support(connections):
    """Makes pandas and polars accept connections of this class. Called when a notebook opens one."""
    global _is_supported
    if not _is_supported:
        _is_supported = True
        after_import("polars.io.database._executor", _support_polars)
        after_import("pandas.io.sql", lambda sql: _support_pandas(sql, connections))
        after_import("marimo._sql.get_engines", lambda engines: _support_marimo(engines, connections))


def _support_polars(executor):
    registry = getattr(executor, "ARROW_DRIVER_REGISTRY", None)
    if isinstance(registry, dict):  # otherwise polars makes its frame of rows
        registry["troupe"] = [
            {
                "fetch_all": "fetch_frames",
                "fetch_batches": "fetch_frames",
                "exact_batch_size": True,
                "repeat_batch_calls": False,
                "minimum_version": None,
            }
        ]


def _support_pandas(sql, connections):
    build = getattr(sql, "pandasSQL_builder", None)
    if build is None:
        return

    def pandasSQL_builder(con, *args, **kwargs):
        if not isinstance(con, connections):
            return build(con, *args, **kwargs)
        from troupe.writing import database_of

        return database_of(con)

    sql.pandasSQL_builder = pandasSQL_builder


def _support_marimo(engines, connections):
    known, general = getattr(engines, "SUPPORTED_ENGINES", None), getattr(engines, "DBAPIEngine", None)
    if isinstance(known, list) and general in known:  # otherwise mo.sql makes its frame of rows
        from troupe.sql_cells import engine_of

        known.insert(known.index(general), engine_of(general, connections))


def polars_frame_of(description, columns):
    """Returns the DataFrame of polars that `polars_frame` makes of the same rows."""
    import polars

    made = []
    for (name, kind, *_), column in zip(description, columns.columns, strict=True):
        if column.has_values():
            made.append(polars.Series(name, column.to_arrow()))
        else:
            made.append(_series(polars, name, kind, kind, column.to_list()))
    return polars.DataFrame(made)


def polars_frame(description, kinds, rows):
    """Returns a DataFrame of polars. `description`: of a cursor; `kinds`: how the cells of each column are read."""
    import polars

    columns = list(zip(*rows)) if rows else [()] * len(description)
    names = [name for name, *_ in description]
    hints = [hint for _, hint, *_ in description]
    made = zip(names, kinds, hints, columns, strict=True)
    return polars.DataFrame([_series(polars, name, kind, hint, values) for name, kind, hint, values in made])


def _series(polars, name, kind, hint, values):
    try:
        if kind == BY_CELL:
            return _mixed(polars, name, hint, values)
        if kind == "decimal":
            return _decimals(polars, name, values)
        if kind == "json":
            return polars.Series(name, values) if any(value is not None for value in values) else polars.Series(name, values, polars.String)
        if kind in ("uuid", "interval", "other"):
            return polars.Series(name, _texts(values), polars.String)
        return polars.Series(name, values, _types(polars)[kind])
    except (TypeError, ValueError, OverflowError, ArithmeticError, polars.exceptions.PolarsError):
        # values that the type cannot hold, such as a date before year 1, and that therefore came as
        # text
        return polars.Series(name, _texts(values), polars.String)


def _mixed(polars, name, hint, values):
    """Returns a Series of the type that the values have, as polars gives them from sqlite3: the declaration of a column of SQLite
    only counts where there is no value."""
    if all(value is None for value in values):
        return polars.Series(name, values, _types(polars).get(hint, polars.Null))
    return polars.Series(name, values, strict=False)


def _types(polars):
    return {
        "boolean": polars.Boolean,
        "integer": polars.Int64,
        "float": polars.Float64,
        "text": polars.String,
        "bytes": polars.Binary,
        "date": polars.Date,
        "time": polars.Time,
        "timestamp": polars.Datetime("us"),
        "timestamptz": polars.Datetime("us", "UTC"),
    }


def _decimals(polars, name, values):
    """Returns decimals with a common scale, or floats if no decimal of polars can hold them."""
    texts = [None if value is None else format(value, "f") for value in values]
    present = [text for text in texts if text is not None]
    scale = max((len(text) - text.find(".") - 1 for text in present if "." in text), default=0)
    digits = max((len(text.partition(".")[0].lstrip("-")) for text in present), default=0)
    column = polars.Series(name, texts, polars.String)
    is_number = all(text.lstrip("-")[:1].isdigit() for text in present)
    return column.cast(polars.Decimal(38, scale) if is_number and digits + scale <= 38 else polars.Float64)


def _texts(values):
    return [value if value is None or isinstance(value, str) else _text(value) for value in values]


def _text(value):
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)
