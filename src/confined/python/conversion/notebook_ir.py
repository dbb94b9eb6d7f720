"""Conversion between Troupe's serialization of a notebook and marimo's, and to a file.

Troupe's: {version, app: {options}, cells: [{cell_id, code, options}], valid, ui_values}. The name of a cell is
options.name. Of its other options, only those with another value than the default are kept. marimo calls the setup
cell by its name, `setup`.

Options are untrusted: an option that marimo does not know, or of another type than it expects, is ignored.
"""

import ast
import json
import keyword

import msgspec
from marimo._ast import codegen
from marimo._ast.parse import split_source_lines
from marimo._schemas.serialization import AppInstantiation, CellDef, Header, NotebookSerializationV1, SetupCell

from conversion import kept_cells, markdown_text

DEFAULTS = {"hide_code": False, "disabled": False, "column": None, "expand_output": False}
MAX_HEADER_CHARS = 1 << 16
SETUP, UNNAMED = "setup", "_"
NO_NAMES = (UNNAMED, "__", SETUP, "", None)  # older versions of marimo wrote two underscores
UNTITLED = "---\ntitle: Notebook\n"  # marimo's front matter for an untitled notebook; reading it would set a title
FILE_OPTIONS = ("layout_file", "css_file", "html_head_file")
APP_OPTIONS = ("width", "app_title", "sql_output", *FILE_OPTIONS)


def to_ir(notebook) -> NotebookSerializationV1:
    return NotebookSerializationV1(
        app=AppInstantiation(options=_app_options(notebook)),
        header=_header(notebook),
        cells=[_to_ir_cell(cell) for cell in notebook["cells"]],
    )


def _header(notebook):
    text = notebook.get("app", {}).get("options", {}).get("header")
    return Header(value=f"{text}\n") if _is_header(text) else None


def _app_options(notebook):
    given = notebook.get("app", {}).get("options", {})
    options = {name: given[name] for name in APP_OPTIONS if isinstance(given.get(name), str)}
    download = given.get("auto_download")
    if isinstance(download, list) and all(isinstance(kind, str) for kind in download):
        options["auto_download"] = download
    return options


def _to_ir_cell(cell):
    given = cell.get("options") or {}
    options = {name: given[name] for name in DEFAULTS if _is_option(name, given.get(name))}
    if cell["cell_id"] == SETUP:
        return SetupCell(code=cell["code"], name=SETUP, options=options)
    return CellDef(code=cell["code"], name=_find_name(given), options=options)


def _is_option(name, value):
    return type(value) is (int if name == "column" else bool)


def _find_name(options):
    """Returns a name that marimo can give to a function."""
    name = options.get("name")
    fits = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and name != SETUP
    return name if fits else UNNAMED


def from_ir(ir) -> dict:
    """Returns our serialization. File formats have no cell ids, so new ones are made in marimo's order."""
    from marimo._ast.cell_id import CellIdGenerator

    ids = CellIdGenerator(seed=42)
    cells = []
    for cell in ir.cells:
        # .md and .ipynb write the defaults out
        options = {
            name: cell.options[name] for name in DEFAULTS if cell.options.get(name, DEFAULTS[name]) != DEFAULTS[name]
        }
        name = cell.options.get("name", cell.name)  # a .py file has the name of an unparsable cell among its options
        if name not in NO_NAMES:
            options["name"] = name
        cell_id = SETUP if cell.name == SETUP else ids.create_cell_id()
        cells.append({"cell_id": cell_id, "code": cell.code, "options": options})
    return {
        "version": "1",
        "app": {"options": {**ir.app.options, **_header_option(ir)}},
        "cells": cells,
        "valid": all(_parses(cell["code"]) for cell in cells),
        "ui_values": {},
    }


def _header_option(ir):
    """Keeps the text above the notebook in a file (such as its requirements, its licence or
    comments) as one of the options of the app."""
    header = codegen._extract_header_comments(ir)
    return {"header": header.strip("\n")} if header and _is_header(header) else {}


def _is_header(text):
    """Returns whether this text runs nothing: it contains only comments, and strings as statements.
    """
    if not isinstance(text, str) or len(text) > MAX_HEADER_CHARS or not text.strip():
        return False
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return False
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)


def _parses(code):
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def mend_converters():
    """Replaces functions of marimo's converters that lose or change parts of a notebook."""
    markdown_text.mend_converters()
    kept_cells.mend_converters()
    _keep_tabs()
    _mend_codegen()


def _mend_codegen():
    """
    marimo puts the text of an option between quotes without escaping it: a quote in it would end the text, and the
    rest would be code. It also indents code after characters that only str.splitlines() takes for the end of a line.
    That changes strings with such characters.
    """
    codegen._format_arg = lambda value: json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    codegen.indent_text = _indent


def _indent(text):
    return "\n".join(codegen.INDENT + line if line.strip() else line for line in split_source_lines(text))


def write_py(notebook) -> str:
    from marimo._convert.converters import MarimoConvert

    mend_converters()
    return MarimoConvert.from_ir(to_ir(notebook)).to_py()


def _keep_tabs():
    """
    Makes marimo's parser of Markdown, which the writer uses as well, leave tabs in fenced code as they are. marimo's
    own parser turns them into blanks, which changes strings and makefiles. Tabs before a fence show how deep it is
    nested: they still become blanks.
    """
    from pymdownx.superfences import SuperFencesBlockPreprocessor

    def normalize_ws(self, text):
        return text if text.strip("> \t") else text.expandtabs(self.tab_len)

    SuperFencesBlockPreprocessor.normalize_ws = normalize_ws


def write_md(notebook) -> str:
    from marimo._convert.converters import MarimoConvert

    mend_converters()
    text = MarimoConvert.from_ir(to_ir(notebook)).to_markdown()
    return text if "app_title" in _app_options(notebook) else text.replace(UNTITLED, "---\n", 1)


def write_ipynb(notebook, results) -> str:
    """`results`: {cell id: {output, console}} to be saved with the cells."""
    from marimo._convert.ipynb.from_ir import convert_from_ir_to_ipynb

    mend_converters()
    app, view = _app_and_view(notebook, results)
    return convert_from_ir_to_ipynb(app, sort_mode="top-down", session_view=view)


def write_html(notebook, results, title, asset_url, include_code, widgets=None) -> str:
    """`asset_url` names a path that serves marimo's front end; None makes the page load it from a public CDN. `widgets`:
    the state of the widgets that the outputs show, as a JSON list of marimo's notifications."""
    from marimo._config.config import DEFAULT_CONFIG
    from marimo._export.exporter import Exporter
    from marimo._export.requests import HTMLExportRequest
    from marimo._export.serialization import serialize_notebook_snapshot
    from marimo._schemas.export_options import HTMLExportOptions

    class Pages(Exporter):
        """
        Replaces a marimo function so that nothing is inlined. A notebook's options and outputs may name files, and
        this process, unlike a kernel, can read files that do not belong to the notebook.
        """

        def _inline_public_files(self, session_snapshot, public_dir):
            pass

        def _inline_virtual_files(self, session_snapshot):
            return session_snapshot, set()

    mend_converters()
    app, view = _app_and_view(notebook, results)
    for notification in _widget_notifications(widgets):
        view.add_notification(notification)
    for name in FILE_OPTIONS:
        setattr(app.config, name, None)
    html, _ = Pages().export_as_html(
        HTMLExportRequest(
            filename=f"{title}.py",
            app_code=app.to_py(),
            app_config=app.config,
            display_config=DEFAULT_CONFIG["display"],
            snapshot=serialize_notebook_snapshot(
                app, view, drop_virtual_file_outputs=False, include_model_notifications=True
            ),
            options=HTMLExportOptions(files=(), include_code=include_code, asset_url=asset_url),
        )
    )
    return html


def _widget_notifications(widgets):
    """
    Yields the notifications in `widgets`, which come from a kernel and are untrusted. Leaves out notifications of
    another shape. Also leaves out those whose code is neither in the notification nor at a public address, because
    they would name files of this process.
    """
    from marimo._messaging.notification import ModelLifecycleNotification

    decode = msgspec.json.Decoder(ModelLifecycleNotification).decode
    for data in msgspec.json.decode(widgets, type=list[msgspec.Raw]) if widgets else ():
        try:
            notification = decode(data)
        except msgspec.ValidationError:
            continue
        code = getattr(notification.message, "esm_spec", None)
        if code is None or code.url.startswith(("data:", "https:", "http:")):
            yield notification


def _app_and_view(notebook, results):
    """marimo's App assigns its own cell ids, in the order of our cells, so results are matched by
    position.
    """
    from marimo._ast.app import InternalApp
    from marimo._ast.load import load_notebook_ir
    from marimo._messaging.cell_output import CellOutput
    from marimo._messaging.notification import CellNotification
    from marimo._session.state.session_view import SessionView

    # Without a name marimo looks for the file of its caller among all loaded modules, which takes longer than the rest.
    app, view = InternalApp(load_notebook_ir(to_ir(notebook), filepath="notebook.py")), SessionView()
    for ours, theirs in zip(notebook["cells"], app.cell_manager.cell_ids(), strict=True):
        view.last_executed_code[theirs] = ours["code"]
        if result := results.get(ours["cell_id"]):
            output = result.get("output")
            view.add_notification(
                CellNotification(
                    cell_id=theirs,
                    status="idle",
                    output=output and CellOutput(**output),
                    console=[CellOutput(**line) for line in result.get("console") or []],
                )
            )
    return app, view
