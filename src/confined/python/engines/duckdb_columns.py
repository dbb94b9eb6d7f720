"""Columns of DuckDB, and expressions that give their values exactly: its Python package rounds times of nanoseconds and
loses the months of intervals. So DuckDB itself makes text of values that Python cannot hold exactly.

Nested values become JSON. In this JSON, whole numbers beyond the exact range of a float, decimals, times and bytes
are text, as DuckDB writes them. A map is a list of keys and values, a union its tag and value, an interval its three
parts.
"""

WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")
LARGE = ("BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT")
AS_THEY_ARE = {
    "BOOLEAN": "boolean",
    **dict.fromkeys((*WHOLE, *LARGE), "integer"),
    "FLOAT": "float",
    "DOUBLE": "float",
    "VARCHAR": "text",
    "BLOB": "bytes",
    "JSON": "json",
}
AS_TEXT = {
    "DATE": "date",
    "TIME": "time",
    "TIME_NS": "time",
    "TIME WITH TIME ZONE": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "INTERVAL": "interval",
    "UUID": "uuid",
    "BIT": "other",
    "BIGNUM": "other",
}
BY_ID = {"decimal": "decimal", "enum": "text"}
NESTED = {"list", "array", "struct", "tuple", "map", "union"}
MAX_SAFE = 2**53 - 1


def is_plain(kind: str) -> bool:
    """Returns whether the name of the type describes it completely."""
    return kind in AS_THEY_ARE or kind in AS_TEXT or kind.startswith("DECIMAL(") and kind.endswith(")")


def column_of(name, kind) -> dict:
    """`kind`: the name of a type of DuckDB, or of a plain type."""
    return {"name": name, "type": type_of(kind)}


def type_of(kind) -> str:
    known = AS_THEY_ARE.get(str(kind)) or AS_TEXT.get(str(kind))
    if known is not None:
        return known
    if isinstance(kind, str):
        return "decimal"
    return "json" if kind.id in NESTED else BY_ID.get(kind.id, "other")


def exact(kind, value) -> str:
    """Returns an expression for the value of a column."""
    if str(kind) in AS_THEY_ARE:
        return value
    if not isinstance(kind, str) and kind.id in NESTED:
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE CAST({json_of(kind, value)} AS VARCHAR) END"
    return f"CAST({value} AS VARCHAR)"


def json_of(kind, value, depth=0) -> str:
    """Returns an expression for the value as JSON."""
    name = str(kind)
    if name in WHOLE or name == "BOOLEAN":
        return f"to_json({value})"
    if name in LARGE:
        small = f"{value} BETWEEN -{MAX_SAFE} AND {MAX_SAFE}"
        return f"CASE WHEN {small} THEN to_json(CAST({value} AS BIGINT)) ELSE to_json(CAST({value} AS VARCHAR)) END"
    if name in ("FLOAT", "DOUBLE"):
        other = f"CASE WHEN isnan({value}) THEN 'NaN' WHEN {value} > 0 THEN 'Infinity' ELSE '-Infinity' END"
        return f"CASE WHEN isfinite({value}) THEN to_json({value}) ELSE to_json({other}) END"
    if name == "INTERVAL":
        return interval_json(value)
    if kind.id in NESTED:
        inner = JSON_OF_NESTED[kind.id](kind, value, depth + 1)
        return f"CASE WHEN {value} IS NULL THEN CAST('null' AS JSON) ELSE {inner} END"
    return f"to_json(CAST({value} AS VARCHAR))"


def interval_json(value):
    months = f"datepart('year', {value}) * 12 + datepart('month', {value})"
    minutes = f"datepart('hour', {value}) * 60 + datepart('minute', {value})"
    micros = f"({minutes}) * 60000000 + datepart('microseconds', {value})"
    parts = f"'months', {months}, 'days', datepart('day', {value}), 'micros', CAST({micros} AS VARCHAR)"
    return f"CASE WHEN {value} IS NULL THEN CAST('null' AS JSON) ELSE json_object({parts}) END"


def list_json(kind, value, depth):
    item = kind.children[0][1]
    return f"to_json(list_transform(CAST({value} AS {item}[]), lambda x{depth}: {json_of(item, f'x{depth}', depth)}))"


def struct_json(kind, value, depth):
    members = (
        f"{quoted(name)}, {json_of(inner, f'struct_extract({value}, {quoted(name)})', depth)}"
        for name, inner in kind.children
    )
    return f"json_object({', '.join(members)})"


def tuple_json(kind, value, depth):
    members = (
        json_of(inner, f"struct_extract({value}, {at})", depth) for at, (_, inner) in enumerate(kind.children, start=1)
    )
    return f"json_array({', '.join(members)})"


def map_json(kind, value, depth):
    (_, key), (_, item) = kind.children
    entry = f"x{depth}"
    keys, values = (json_of(one, f"struct_extract({entry}, '{name}')", depth) for one, name in ((key, "key"), (item, "value")))
    return f"to_json(list_transform(map_entries({value}), lambda {entry}: json_object('key', {keys}, 'value', {values})))"


def union_json(kind, value, depth):
    members = [(name, inner) for name, inner in kind.children if name]
    cases = " ".join(
        f"WHEN {quoted(name)} THEN {json_of(inner, f'union_extract({value}, {quoted(name)})', depth)}"
        for name, inner in members
    )
    tag = f"CAST(union_tag({value}) AS VARCHAR)"
    return f"json_object('tag', {tag}, 'value', CASE {tag} {cases} END)"


JSON_OF_NESTED = {
    "list": list_json, "array": list_json, "struct": struct_json, "tuple": tuple_json, "map": map_json,
    "union": union_json,
}  # fmt: skip


def quoted(text) -> str:
    return "'" + text.replace("'", "''") + "'"
