"""Frames of pandas in datasources: `pandas.read_sql`, and `frame.to_sql("orders", datasource("sales"))`."""

import datetime
import decimal
import json

import pandas
from pandas.io.sql import SQLiteDatabase

from troupe import reading

MAX_ROWS = 1000  # the rows of one INSERT; SQL Server allows no more
POSTGRES = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "float": "DOUBLE PRECISION",
    "decimal": "NUMERIC",
    "text": "TEXT",
    "bytes": "BYTEA",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
}
REDSHIFT = {**POSTGRES, "text": "VARCHAR(65535)", "bytes": "VARBYTE(1024000)", "decimal": "NUMERIC(38, 10)"}
MYSQL = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "float": "DOUBLE",
    "decimal": "DECIMAL(38, 10)",
    "text": "LONGTEXT",
    "bytes": "LONGBLOB",
    "date": "DATE",
    "time": "TIME(6)",
    "timestamp": "DATETIME(6)",
    "timestamptz": "DATETIME(6)",
}
MSSQL = {
    "boolean": "BIT",
    "integer": "BIGINT",
    "float": "FLOAT",
    "decimal": "DECIMAL(38, 10)",
    "text": "NVARCHAR(MAX)",
    "bytes": "VARBINARY(MAX)",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "DATETIME2",
    "timestamptz": "DATETIMEOFFSET",
}
SQLITE = {
    "boolean": "INTEGER",
    "integer": "INTEGER",
    "float": "REAL",
    "decimal": "TEXT",
    "text": "TEXT",
    "bytes": "BLOB",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP",
}
TYPES = {"postgres": POSTGRES, "redshift": REDSHIFT, "mysql": MYSQL, "mariadb": MYSQL, "mssql": MSSQL, "sqlite": SQLITE}
# the schema used when none is named, and how many parameters one statement may have
CURRENT_SCHEMA = {"mysql": "database()", "mariadb": "database()", "mssql": "schema_name()"}
WITHOUT_ZONES = ("mysql", "mariadb")
MAX_PARAMETERS = {"mssql": 2000}
USUAL_PARAMETERS = 30_000
# the kinds of `pandas.api.types.infer_dtype`
KINDS = {
    "boolean": "boolean",
    "integer": "integer",
    "floating": "float",
    "mixed-integer-float": "float",
    "decimal": "decimal",
    "bytes": "bytes",
    "date": "date",
    "time": "time",
    "datetime": "timestamp",
    "datetime64": "timestamp",
    "timedelta": "integer",
    "timedelta64": "integer",
}


def database_of(connection):
    """Returns a datasource as pandas uses databases."""
    return Datasource(connection)


class Datasource(SQLiteDatabase):
    """Reads like pandas with any driver, and writes in the SQL dialect of the database."""

    def __init__(self, con):
        super().__init__(con)
        self._kind = None
        self._executed = None

    def execute(self, sql, params=None):
        cursor, self._executed = self._executed, None
        return super().execute(sql, params) if cursor is None else cursor

    def read_query(
        self, sql, index_col=None, coerce_float=True, parse_dates=None, params=None, chunksize=None, dtype=None, dtype_backend="numpy"
    ):
        """Reads by columns where that is possible, and otherwise rows, as pandas does with any driver."""
        cursor = self.execute(sql, params)
        is_plain = parse_dates is None and chunksize is None and not dtype and dtype_backend == "numpy"
        columns = cursor.fetch_columns() if is_plain and cursor.description else None
        if columns is None:
            self._executed = cursor
            return super().read_query(sql, index_col, coerce_float, parse_dates, params, chunksize, dtype, dtype_backend)
        names = [name for name, *_ in cursor.description]
        cursor.close()
        frame = reading.frame_of(names, columns, coerce_float)
        for at, dtype in enumerate(frame.dtypes):
            if isinstance(dtype, pandas.DatetimeTZDtype):  # as pandas does after each query
                frame.isetitem(at, pandas.to_datetime(frame.iloc[:, at], utc=True))
        return frame if index_col is None else frame.set_index(index_col)

    def to_sql(
        self, frame, name, if_exists="fail", index=True, index_label=None, schema=None, chunksize=None, dtype=None, method=None, engine="auto", **_
    ):
        """Creates the table if it is missing, and inserts the rows. Each statement commits
        itself, so rows that were inserted before a failure stay."""
        if callable(method):
            raise self.con.NotSupportedError("to_sql of a datasource inserts rows itself: leave out `method`")
        if chunksize is not None and chunksize < 1:
            raise ValueError("chunksize is at least 1")
        kind = self._find_kind()
        table = ".".join(self._quoted(part) for part in (schema, name) if part is not None)
        columns = _columns_of(frame, index, index_label)
        if self.has_table(name, schema):
            if if_exists == "fail":
                raise ValueError(f"Table '{name}' already exists.")
            if if_exists == "replace":
                self._run(f"DROP TABLE {table}")
                self._create(table, columns, dtype)
            if if_exists == "delete_rows":
                self._run(f"DELETE FROM {table}")
        else:
            self._create(table, columns, dtype)
        names = ", ".join(self._quoted(column) for column, _ in columns)
        most = MAX_PARAMETERS.get(kind, USUAL_PARAMETERS)
        if len(columns) > most:
            raise self.con.DataError(f"a statement has at most {most:,} parameters, and a row of the frame has {len(columns):,} values")
        rows = list(zip(*(_values_of(series, kind) for _, series in columns), strict=True)) if columns else []
        step = max(1, min(MAX_ROWS, most // max(1, len(columns)), chunksize or MAX_ROWS))
        row = f"({', '.join('?' * len(columns))})"
        for at in range(0, len(rows), step):
            part = rows[at : at + step]
            self._run(f"INSERT INTO {table} ({names}) VALUES {', '.join([row] * len(part))}", [value for one in part for value in one])
        return len(rows)

    def has_table(self, name, schema=None) -> bool:
        kind = self._find_kind()
        if kind == "sqlite":
            query, given = "SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?", [name]
        else:
            place = "?" if schema is not None else CURRENT_SCHEMA.get(kind, "current_schema()")
            query = f"SELECT 1 FROM information_schema.tables WHERE table_name = ? AND table_schema = {place}"
            given = [name] if schema is None else [name, schema]
        return bool(self.con.execute(query, given).fetchall())

    def _find_kind(self):
        if self._kind is None:
            kind = self.con.find_kind()
            if kind not in TYPES:
                raise self.con.NotSupportedError(f"to_sql cannot write into datasources of kind {kind}: it can into {', '.join(TYPES)}")
            self._kind = kind
        return self._kind

    def _create(self, table, columns, dtype):
        types = TYPES[self._kind]
        given = dtype if isinstance(dtype, dict) else {} if dtype is None else {name: dtype for name, _ in columns}
        if not all(isinstance(one, str) for one in given.values()):
            raise ValueError("the types of columns are names of types of the database")
        described = (f"{self._quoted(name)} {given.get(name) or types[_kind_of(series)]}" for name, series in columns)
        self._run(f"CREATE TABLE {table} ({', '.join(described)})")

    def _quoted(self, name):
        quote = "`" if self._kind in ("mysql", "mariadb") else '"'
        return f"{quote}{name.replace(quote, quote * 2)}{quote}"

    def _run(self, statement, parameters=()):
        self.con.cursor().execute(statement, parameters)


def _columns_of(frame, index, index_label):
    """Returns pairs of names and Series: first the levels of the index, then the columns."""
    columns = [(str(name), frame.iloc[:, at]) for at, name in enumerate(frame.columns)]
    if not index:
        return columns
    levels = frame.index.nlevels
    labels = [index_label] if isinstance(index_label, str) else list(index_label or frame.index.names)
    if len(labels) != levels:
        raise ValueError(f"Length of 'index_label' should match number of levels, which is {levels}")
    if levels == 1 and labels == [None]:
        labels = ["index" if "index" not in frame.columns else "level_0"]
    given = [str(label) if label is not None else f"level_{at}" for at, label in enumerate(labels)]
    return [(label, frame.index.get_level_values(at).to_series()) for at, label in enumerate(given)] + columns


def _kind_of(series):
    kind = KINDS.get(pandas.api.types.infer_dtype(series, skipna=True), "text")
    if kind == "timestamp":
        first = next((value for value in series.tolist() if not pandas.isna(value)), None)
        return "timestamptz" if getattr(first, "tzinfo", None) is not None else kind
    return kind


def _values_of(series, database):
    values = [_value_of(value) for value in series.tolist()]
    if database not in WITHOUT_ZONES:
        return values
    return [_in_utc(value) if isinstance(value, datetime.datetime) and value.tzinfo is not None else value for value in values]


def _in_utc(moment):
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)


def _value_of(value):
    if getattr(value, "ndim", 0) > 0:  # an array of numpy, as Parquet files have them in cells
        value = value.tolist()
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value)
    if value is None or value is pandas.NaT or pandas.isna(value):
        return None
    if isinstance(value, datetime.timedelta):
        return pandas.Timedelta(value).as_unit("ns").value  # as pandas writes them to other databases
    known = (bool, int, float, str, bytes, decimal.Decimal, datetime.date, datetime.time)
    return value if isinstance(value, known) or hasattr(value, "item") else str(value)
