"""The results of runs and code calls, in the forms in which people use them."""

import html
import re
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from ._charts import chart_forms
from ._columns import typed_column
from .models import AgentRun, CellResult, CodeError, CodeResult, Failure, FinalAnswer, NotebookRun, OutputTable

_BUNDLE = "application/vnd.marimo+mimebundle"
_ERROR = "application/vnd.marimo+error"
_CHART = re.compile(r"application/vnd\.(vega(lite)?|plotly)\.v\d[\w.]*\+json")


@dataclass(frozen=True)
class Image:
    """A figure: its bytes and their media type."""

    mimetype: str
    data: bytes


class _Shown:
    """The common part of the results of cells and of code: a value, and the figures that were shown meanwhile."""

    def __init__(self, value: Any, figures: list[Any], assets: Mapping[str, bytes] | None = None) -> None:
        self._value = value
        self._figures = figures
        self._assets = assets or {}

    @property
    def text(self) -> str:
        """The value as text, such as its `repr`; the error of a cell that failed. Empty when there is no value."""
        if self._value is None:
            return ""
        text = self._value.text
        return text if isinstance(text, str) else next((data for kind, data in self._data() if _is_text(kind, data)), "")

    @property
    def table(self) -> OutputTable | None:
        """The columns and first rows of a value that is a table, such as a data frame."""
        table = None if self._value is None else self._value.table
        return table if isinstance(table, OutputTable) else None

    @property
    def df(self) -> Any:
        """
        The table as a `pandas.DataFrame`, which has at most its first 100 rows; `table.row_count` has their number. Its columns
        have the types of the table, as far as pandas has them. Needs pandas. Raises `ValueError` when the value is not a table.
        """
        if self.table is None:
            raise ValueError("The value is not a table.")
        pandas = import_module("pandas")
        table = self.table
        columns = [
            typed_column(pandas, [row[place] for row in table.rows], column.type) for place, column in enumerate(table.columns)
        ]
        frame = pandas.concat(columns, axis=1) if columns else pandas.DataFrame()
        frame.columns = [column.name for column in table.columns]
        if self.table.row_count > len(frame):
            message = f"The data frame has the first {len(frame)} of {self.table.row_count} rows."
            warnings.warn(message, stacklevel=2)
        return frame

    @cached_property
    def images(self) -> list[Image]:
        """The figures: those that were shown, and the value if it is one."""
        return [
            Image(mimetype, _bytes(data))
            for output in [*self._figures, *([] if self._value is None else [self._value])]
            for mimetype, data in _members(output, self._assets)
            if mimetype.startswith("image/")
        ]

    @property
    def html(self) -> str | None:
        """The value as HTML, if the kernel made any. Elements that marimo's front end draws need that front end."""
        return next((str(data) for mimetype, data in self._data() if mimetype in ("text/html", "text/markdown")), None)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """
        Returns the forms in which Jupyter and marimo show the result. A chart also has a picture or HTML, for front ends that
        cannot draw its specification.
        """
        bundle: dict[str, Any] = {"text/plain": self._plain()}
        for mimetype, data in self._data():
            if _CHART.fullmatch(mimetype):  # JupyterLab draws a chart from its specification
                bundle[mimetype] = spec = msgspec.json.decode(data) if isinstance(data, str | bytes) else data
                bundle.update(chart_forms(mimetype, spec))
        if self.table is not None:
            bundle["text/html"] = _table_html(self.table)
        elif self.html is not None and "<marimo-" not in self.html:
            bundle["text/html"] = self.html
        for image in self.images[-1:]:
            is_text = image.mimetype == "image/svg+xml"
            bundle[image.mimetype] = image.data.decode() if is_text else b64encode(image.data).decode()
        return bundle

    def _plain(self) -> str:
        return self.text

    def _data(self) -> Iterator[tuple[str, Any]]:
        return iter(()) if self._value is None else _members(self._value, self._assets)


class CellOutcome(_Shown):
    """The result of one cell in a run."""

    def __init__(self, result: CellResult, assets: Mapping[str, bytes]) -> None:
        figures = [entry for entry in result.console if entry.channel == "media"]
        super().__init__(result.outputs[-1] if result.outputs else None, figures, assets)
        self.result = result
        """The result as the server sent it."""
        self.status = result.status

    @property
    def stdout(self) -> str:
        """The printed text of the cell."""
        return self._printed("stdout")

    @property
    def stderr(self) -> str:
        """The text that the cell wrote to its standard error, tracebacks included."""
        return self._printed("stderr")

    @property
    def errors(self) -> list[CodeError]:
        """Why the cell failed; empty if it did not."""
        return [
            CodeError(
                type=str(error.get("exception_type") or error.get("type")),
                message=str(error.get("msg") or self.text),
                cell_id=self.result.cell_id,
            )
            for output in self.result.outputs
            if output.mimetype == _ERROR and isinstance(output.data, list)
            for error in output.data
            if isinstance(error, dict)
        ]

    def _printed(self, channel: str) -> str:
        entries = [entry for entry in self.result.console if entry.channel == channel]
        # The text of a traceback says the same as its HTML. The text of printed output is cut after its beginning.
        return "".join(
            entry.text
            if isinstance(entry.text, str) and entry.mimetype != "text/plain"
            else _text(entry, self._assets)
            for entry in entries
        )

    def __repr__(self) -> str:
        return f"<CellOutcome {self.result.cell_id!r}: {self.status}>"


class CodeOutcome(_Shown):
    """The result of a code call."""

    def __init__(self, result: CodeResult) -> None:
        super().__init__(result.output, [_WithoutText(figure.mimetype, figure.data) for figure in result.media])
        self.result = result
        """The result as the server sent it."""
        self.success = result.success
        """False when the code, a cell that it ran, or the kernel failed: `errors` say why."""
        self.stdout = result.stdout
        self.stderr = result.stderr
        self.errors = result.errors

    def _plain(self) -> str:
        return "\n".join(part for part in (self.stdout.rstrip("\n"), self.stderr.rstrip("\n"), self.text) if part)

    def __str__(self) -> str:
        return self._plain()

    def __repr__(self) -> str:
        return f"<CodeOutcome: {'success' if self.success else self.errors}>"


class RunOutcome:
    """A run as it is stored: that of cells, or of a prompt."""

    def __init__(self, run: NotebookRun | AgentRun, assets: Mapping[str, bytes]) -> None:
        self.run = run
        """The run as the server sent it."""
        self.id = run.id
        self.status = run.status
        self.error: Failure | None = run.error
        self._assets = assets

    @cached_property
    def cells(self) -> dict[str, CellOutcome]:
        """The results of the cells that ran, by their ids, in order."""
        parts = self.run.output.parts if self.run.output is not None else []
        return {part.cell_id: CellOutcome(part, self._assets) for part in parts if isinstance(part, CellResult)}

    @property
    def answer(self) -> str:
        """The final answer to a prompt, in Markdown. Empty when there is none."""
        parts = self.run.output.parts if self.run.output is not None else []
        return "".join(part.markdown for part in parts if isinstance(part, FinalAnswer))

    def __repr__(self) -> str:
        return f"<RunOutcome {self.id}: {self.status}>"


def image_assets(run: NotebookRun | AgentRun) -> list[str]:
    """Returns the ids of the assets of a run that are figures, charts, or text that was printed."""
    parts = run.output.parts if run.output is not None else []
    return [
        output.asset_id
        for part in parts
        if isinstance(part, CellResult)
        for output in (*part.outputs, *part.console)
        if isinstance(output.asset_id, str) and _is_wanted(output.mimetype)
    ]


def _is_wanted(mimetype: str) -> bool:
    return mimetype.startswith("image/") or mimetype in (_BUNDLE, "text/plain") or _CHART.fullmatch(mimetype) is not None


@dataclass(frozen=True)
class _WithoutText:
    mimetype: str
    data: Any
    text: None = None
    table: None = None


def _members(output: Any, assets: Mapping[str, bytes]) -> Iterator[tuple[str, Any]]:
    """Yields the media types of an output with their data. An output whose value is another asset has none."""
    asset_id = getattr(output, "asset_id", None)
    data = assets.get(asset_id) if isinstance(asset_id, str) else output.data
    if data is None or data is msgspec.UNSET:
        return
    if output.mimetype != _BUNDLE:
        yield output.mimetype, data
        return
    bundle = msgspec.json.decode(data) if isinstance(data, str | bytes) else data
    yield from ((mimetype, member) for mimetype, member in bundle.items() if "/" in mimetype)


def _text(output: Any, assets: Mapping[str, bytes]) -> str:
    data = next((data for _, data in _members(output, assets)), "")
    return data.decode(errors="replace") if isinstance(data, bytes) else str(data)


def _is_text(mimetype: str, data: Any) -> bool:
    return mimetype.startswith("text/") and isinstance(data, str)


def _bytes(data: Any) -> bytes:
    """Returns the bytes of a figure: of a data URL, of base64, or of the text of an SVG."""
    if isinstance(data, bytes):
        return data
    text = str(data)
    if text.startswith("data:"):
        head, _, body = text.partition(",")
        return b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body)
    return text.encode() if text.lstrip().startswith("<") else b64decode(text)


def _table_html(table: OutputTable) -> str:
    def row(values: list[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape('' if v is None else str(v))}</{tag}>" for v in values) + "</tr>"

    head = row([column.name for column in table.columns], "th")
    body = "".join(row(values, "td") for values in table.rows)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
