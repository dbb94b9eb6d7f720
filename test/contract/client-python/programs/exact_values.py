"""Types of data frames, copies of exceptions, and charts for Jupyter. Raises an `AssertionError` when a value is wrong. Needs no server."""

import copy
import datetime
import pickle
from decimal import Decimal

import pandas

import troupe_client
from troupe_client import ApiError, CodeInterrupted, CodeOutcome, SessionFailed
from troupe_client._columns import typed_column
from troupe_client.models import CodeOutput, CodeResult

BIG = 2**53 + 1
KINDS: list[tuple[str, list[object], list[object], str]] = [
    ("int64", [1, str(BIG)], [1, BIG], "int64"),
    ("uint64", [str(2**64 - 1)], [2**64 - 1], "uint64"),
    ("int8", [1], [1], "int8"),
    ("Int64", [None, str(BIG)], [pandas.NA, BIG], "Int64"),
    ("UInt32", [7], [7], "UInt32"),
    ("float64", ["inf", "-inf", 1, 0.5], [float("inf"), float("-inf"), 1.0, 0.5], "float64"),
    ("double", [1], [1.0], "float64"),
    ("Float32", [0.5], [0.5], "Float32"),
    ("bool", [True, False], [True, False], "bool"),
    ("boolean", [True, None], [True, pandas.NA], "boolean"),
    ("str", ["1", "inf"], ["1", "inf"], "str"),
    ("String", ["2020-01-01"], ["2020-01-01"], "string"),
    ("object", [1, "a"], [1, "a"], "object"),
    ("category", ["a", "a"], ["a", "a"], "category"),
    ("decimal128(10, 2)", ["1.10"], [Decimal("1.10")], "object"),
    ("Decimal(precision=38, scale=2)", ["1.10"], [Decimal("1.10")], "object"),
    ("Date", ["2020-01-31"], [datetime.date(2020, 1, 31)], "object"),
    ("timedelta64[ns]", ["1 days 00:00:01"], [pandas.Timedelta(days=1, seconds=1)], "timedelta64[ns]"),
    ("datetime64[us]", ["2020-01-31T10:00:00"], [pandas.Timestamp("2020-01-31T10:00")], "datetime64[us]"),
    (
        "datetime64[ns, Europe/Berlin]",
        ["2020-03-29T01:00:00+01:00", "2020-03-29T03:00:00+02:00"],
        [pandas.Timestamp("2020-03-29T01:00", tz="Europe/Berlin"), pandas.Timestamp("2020-03-29T03:00", tz="Europe/Berlin")],
        "datetime64[ns, Europe/Berlin]",
    ),
    (
        "Datetime(time_unit='us', time_zone='UTC')",
        ["2020-01-31T10:00:00+00:00"],
        [pandas.Timestamp("2020-01-31T10:00", tz="UTC")],
        "datetime64[us, UTC]",
    ),
    ("Datetime(time_unit='ms', time_zone=None)", ["2020-01-31T10:00:00"], [pandas.Timestamp("2020-01-31T10:00")], "datetime64[ms]"),
    ("timestamp[s, tz=UTC]", ["2020-01-31T10:00:00+00:00"], [pandas.Timestamp("2020-01-31T10:00", tz="UTC")], "datetime64[s, UTC]"),
]

for type, sent, expected, dtype in KINDS:
    column = typed_column(pandas, sent, type)
    found = [value is other or bool(value == other) for value, other in zip(column, expected, strict=True)]
    assert all(found) and str(column.dtype) == dtype, (type, list(column), str(column.dtype))

api = ApiError(409, {"retry-after": "3"}, b'{"code": "session_busy", "detail": "It is busy."}')
for error in (api, CodeInterrupted("http://x", "cut"), SessionFailed("failed", "It failed.")):
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (copied.__class__, str(copied), repr(copied.__dict__)) == (error.__class__, str(error), repr(error.__dict__))

chart = CodeOutput(mimetype="application/vnd.vegalite.v5+json", data='{"mark": "bar"}')
result = CodeResult(success=True, output=chart, stdout="", stderr="", media=[], errors=[])
assert CodeOutcome(result)._repr_mimebundle_()[chart.mimetype] == {"mark": "bar"}

assert troupe_client.__version__.count(".") == 2
