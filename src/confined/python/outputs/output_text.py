"""Outputs as text, like `text/plain` in Jupyter: the `repr` of a value, the words of a page."""

import html

import msgspec

from outputs.output_page import page_text

MIMEBUNDLE = "application/vnd.marimo+mimebundle"

MAX_TEXT_CHARS = 16_000
MAX_REPR_SOURCE_CHARS = 1_000_000
PLAIN = ("<pre class='text-xs'>", "</pre>")
# repr() of their values runs a query
LAZY = {"duckdb", "_duckdb", "ibis", "pyspark", "snowflake", "datafusion", "sqlframe", "daft"}


def describe(mimetype, data, value=None) -> str:
    """Returns the text of an output. `value`: the shown value, or None where only the output is known. Calls
    repr(value), which may raise."""
    if mimetype == "text/plain":
        return cut(data)
    begin, end = PLAIN
    if data.startswith(begin) and data.endswith(end) and data.count("<") == 2:  # marimo has called repr()
        return cut(html.unescape(data[len(begin) : -len(end)]))
    if value is not None and (text := _value_text(mimetype, data, value)) is not None:
        return cut(text)
    kind = mimetype.split(";")[0]
    if kind == MIMEBUNDLE:
        return _bundle_text(data)
    if kind in ("text/html", "text/markdown"):
        return cut(page_text(data))
    if kind.startswith("text/") or kind.endswith("json") and not kind.startswith("application/vnd."):
        return cut(data)
    return f"[{kind}]"


def _bundle_text(data):
    """Returns the text of the most informative member, or the names of all members."""
    bundle = msgspec.json.decode(data)
    for kind in ("text/plain", "text/markdown", "text/html"):
        if isinstance(text := bundle.get(kind), str):
            return describe(kind, text)
    return "".join(f"[{kind}]" for kind in bundle if "/" in kind)


def _value_text(mimetype, data, value):
    """Returns the text of the value itself; None when its repr says less than the output does."""
    kind = type(value)
    if isinstance(source := getattr(value, "_markdown_text", None), str) and kind.__module__ == "marimo._output.md":
        return source
    if kind.__module__.startswith("marimo.") or kind.__module__.split(".")[0] in LAZY:
        return None
    if kind.__repr__ is object.__repr__:
        return None
    if mimetype == "application/json" and len(data) > MAX_REPR_SOURCE_CHARS:
        return data
    return str.__str__(repr(value))


def cut(text, limit=MAX_TEXT_CHARS) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n… {len(text) - limit} more characters"
