"""Reading uploaded notebook files: .py (marimo's, or any script), .ipynb, .md. An error says where the file is broken."""

import ast
import json
import re

from marimo._ast.parse import split_source_lines
from marimo._schemas.serialization import UnparsableCell

from conversion import kept_cells, pip_lines
from conversion.jupyter_cells import without_raw_and_attachments
from conversion.jupyter_names import with_display
from conversion.notebook_ir import from_ir, mend_converters
from conversion.parameters_cell import with_arguments

CELL_MARK = re.compile(r"^# ?%%(.*)$")
MARIMO_IMPORT = re.compile(r"^import marimo as mo\b", re.MULTILINE)
RUN_GUARD_LINE = re.compile(r"if\s+__name__\s*==")
RUN_GUARD = "__name__ == '__main__'"
FRONT_MATTER = re.compile(r"---\r?\n(.*?)\r?\n---\s*(\r?\n|$)", re.DOTALL)


class UnreadableNotebook(Exception):
    """Raised for a file that cannot be read. The message is for the person who uploaded the file."""


def read_notebook(content, format, installs=False) -> dict:
    """Returns Troupe's serialization of the file's text. With `installs`, packages that its cells ask pip for are dependencies of the
    notebook. Raises UnreadableNotebook when the text does not fit the format."""
    if not isinstance(content, str):
        raise UnreadableNotebook("the content is not text")
    text = content.removeprefix("\ufeff")  # Windows programs write a byte order mark
    if format == "ipynb":
        return read_ipynb(text, installs)
    return {"py": read_py, "md": read_md}[format](text)


def find_pip_requirements(content, format) -> dict | None:
    """Returns the pip requests of a readable Jupyter notebook, as `pip_lines` does; None when there are none."""
    if format != "ipynb":
        return None
    found = pip_lines.find_requirements(_find_cells(json.loads(content.removeprefix("\ufeff"))))
    return found if found["requirements"] or found["others"] else None


def read_py(content) -> dict:
    """Makes a notebook from a script that is not one: the parts between `# %%` lines become cells,
    otherwise the whole script is a single cell.
    """
    from marimo._convert.converters import MarimoConvert

    try:
        module = ast.parse(content)
    except SyntaxError as error:
        if error.lineno is not None:
            if (notebook := _read_around_errors(content)) is not None:
                return notebook
            raise UnreadableNotebook(f"line {error.lineno}, column {error.offset}: {error.msg}") from error
        raise UnreadableNotebook(f"line {find_null_line(content)}: {error.msg}") from error
    except ValueError as error:  # how Python up to 3.11.3 reports a null byte
        raise UnreadableNotebook(f"line {find_null_line(content)}: {error}") from error
    ir = MarimoConvert.from_py(content).to_ir()
    if not (ir.valid and ir.cells):
        return _read_cells(split_script(content))
    _refuse_loss(find_lost_line(module, ir.violations))
    return from_ir(ir)


def _refuse_loss(line):
    if line is not None:
        raise UnreadableNotebook(
            f"line {line}: marimo drops what stands outside of cells, and a setup cell that is not the first. Move it into a cell"
        )


def _read_around_errors(content):
    """
    Returns a notebook of marimo whose cells do not all parse, for example because they have the syntax of a newer
    Python. marimo finds the ends of such cells by their decorators, and keeps their text. Returns None when the text
    is not such a notebook.
    """
    from marimo._convert.converters import MarimoConvert

    try:
        ir = MarimoConvert.from_py(content).to_ir()
    except Exception:  # marimo documents no exceptions; the caller reports the error of Python's own parser
        return None
    if not (ir.valid and ir.cells):
        return None
    lines = content.split("\n")
    guard = max((at for at, line in enumerate(lines) if RUN_GUARD_LINE.match(line)), default=len(lines))
    try:
        end = ast.parse("\n".join(lines[guard:]))
    except SyntaxError:
        return None
    line = find_lost_line(end, [])
    _refuse_loss(find_lost_line(ast.Module([], []), ir.violations) or (line and guard + line))
    for cell in ir.cells:
        if isinstance(cell, UnparsableCell) and cell.lineno:
            cell.options = {**_find_options(lines[cell.lineno - 1]), **cell.options}
    return from_ir(ir)


def _find_options(decorator) -> dict:
    """Returns the options in a line `@app.cell(hide_code=True)`, which marimo drops when the cell does not parse."""
    if not decorator.startswith("@app.cell("):
        return {}
    try:
        call = ast.parse(decorator[1:], mode="eval").body
    except SyntaxError:
        return {}
    keywords = call.keywords if isinstance(call, ast.Call) else []
    return {one.arg: one.value.value for one in keywords if isinstance(one.value, ast.Constant)}


def find_lost_line(module, violations):
    """Returns the first line of a marimo notebook that marimo would drop silently; None when there is none."""
    lost = [one.lineno for one in violations if one.description.startswith("Unexpected statement")]
    guards = [at for at, node in enumerate(module.body) if isinstance(node, ast.If) and ast.unparse(node.test) == RUN_GUARD]
    after = module.body[guards[0] + 1 :] if guards else []
    return min([*lost, *(node.lineno for node in after)], default=None)


def find_null_line(content) -> int:
    """Returns the line of the first null byte, which Python does not report."""
    return content.count("\n", 0, max(content.find("\0"), 0)) + 1


def split_script(content) -> list:
    """Returns cells in the shape of .ipynb. `# %% [markdown]` starts prose, whose lines are
    comments.
    """
    cells, lines, kind = [], [], "code"

    def end_cell():
        text = "\n".join(lines).strip("\n")
        if text:
            cells.append({"cell_type": kind, "source": text, "metadata": {}})

    for line in split_source_lines(content):
        if mark := CELL_MARK.match(line):
            end_cell()
            lines, kind = [], "markdown" if "[markdown]" in mark[1] or "[md]" in mark[1] else "code"
        else:
            lines.append(re.sub(r"^# ?", "", line) if kind == "markdown" else line)
    end_cell()
    return cells


def read_ipynb(content, installs) -> dict:
    try:
        notebook = json.loads(content)
    except json.JSONDecodeError as error:
        raise UnreadableNotebook(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    if not isinstance(notebook, dict):
        raise UnreadableNotebook("line 1: a Jupyter notebook is a JSON object")
    cells = _find_cells(notebook)
    if not isinstance(cells, list):
        raise UnreadableNotebook("it has no list of cells")
    for number, cell in enumerate(cells, 1):
        if fault := _find_fault(cell):
            raise UnreadableNotebook(f"cell {number}: {fault}")
    metadata = notebook.get("metadata", {})
    if not isinstance(metadata, dict) or not isinstance(metadata.get("marimo", {}), dict):
        raise UnreadableNotebook("its metadata is not an object")
    if language := _find_other_language(metadata, cells):
        raise UnreadableNotebook(f"it is a notebook in {language}, and only Python can be run")
    notebook = _read_cells([without_raw_and_attachments(cell) for cell in with_arguments(cells)], metadata)
    if not all(map(kept_cells.find_kept_code, cells)):
        notebook["cells"] = with_display(notebook["cells"])
    requirements = pip_lines.find_requirements(cells)["requirements"] if installs else []
    if requirements:
        options = notebook["app"]["options"]
        options["header"] = pip_lines.with_dependencies(options.get("header", ""), requirements)
    return notebook


def _find_cells(notebook):
    """Returns the cells of a Jupyter notebook; None when it has no list of them. Cells of format 3, which Jupyter wrote until 2015,
    get the form of format 4."""
    cells, worksheets = notebook.get("cells"), notebook.get("worksheets")
    if cells is not None:
        return cells
    if not (isinstance(worksheets, list) and all(isinstance(sheet, dict) for sheet in worksheets)):
        return None
    lists = [sheet.get("cells") for sheet in worksheets]
    if not all(isinstance(cells, list) for cells in lists):
        return None
    return [_cell_of_format_3(cell) if isinstance(cell, dict) else cell for cells in lists for cell in cells]


def _cell_of_format_3(cell):
    kind = cell.get("cell_type")
    if kind == "code":
        return {"metadata": {}, **cell, "source": cell.get("input", "")}
    if kind == "heading":
        source, level = cell.get("source", ""), cell.get("level")
        text = source if isinstance(source, str) else "".join(map(str, source)) if isinstance(source, list) else ""
        depth = level if isinstance(level, int) and 1 <= level <= 6 else 1
        return {"cell_type": "markdown", "source": f"{'#' * depth} {' '.join(text.split())}", "metadata": {}}
    return {"metadata": {}, **cell, "cell_type": "markdown" if kind == "html" else kind}


def _find_other_language(metadata, cells):
    """Returns the language in which the notebook says it is written, unless that is Python. Cells of format 3 name theirs."""
    info, kernel = metadata.get("language_info"), metadata.get("kernelspec")
    of_notebook = (isinstance(info, dict) and info.get("name"), isinstance(kernel, dict) and kernel.get("language"))
    for given in (*of_notebook, *(cell.get("language") for cell in cells if "input" in cell)):
        if isinstance(given, str) and given.strip() and not given.lower().startswith(("python", "ipython")):
            return given.strip()[:40]
    return None


def _find_fault(cell):
    if not isinstance(cell, dict):
        return "not an object"
    if not isinstance(cell.get("cell_type"), str):
        return "no cell_type"
    source = cell.get("source")
    if not (isinstance(source, str) or isinstance(source, list) and all(isinstance(line, str) for line in source)):
        return "no source text"
    metadata = cell.get("metadata", {})
    if not isinstance(metadata, dict) or not isinstance(metadata.get("marimo", {}), dict):
        return "metadata is not an object"
    return None


def _read_cells(cells, metadata=None):
    if not cells:
        return _convert_cells(cells, metadata)
    try:
        return _convert_cells(cells, metadata)
    except (RecursionError, MemoryError):
        raise
    # the converter fails on the notebook as a whole: each cell is converted alone to find the one
    # at fault
    except Exception as error:
        for number, cell in enumerate(cells, 1):
            try:
                _convert_cells([cell], metadata)
            except Exception as cause:
                raise UnreadableNotebook(f"cell {number}: {cause}") from error
        raise


def _convert_cells(cells, metadata):
    from marimo._convert.converters import MarimoConvert

    def convert_others(cells):
        pip_lines.keep_as_comments()
        notebook = {"cells": cells, "metadata": metadata or {}, "nbformat": 4, "nbformat_minor": 5}
        return MarimoConvert.from_ipynb(json.dumps(notebook)).to_ir()

    mend_converters()
    return from_ir(kept_cells.convert(cells, metadata or {}, convert_others))


def read_md(content) -> dict:
    import yaml
    from marimo._convert.converters import MarimoConvert

    if header := FRONT_MATTER.match(content):
        try:
            yaml.safe_load(header[1])
        except yaml.MarkedYAMLError as error:  # marimo would continue without this cell
            mark = error.problem_mark
            raise UnreadableNotebook(f"line {mark.line + 2}, column {mark.column + 1}: {error.problem}") from error
    mend_converters()
    notebook = from_ir(MarimoConvert.from_md(content).to_ir())
    codes = [cell["code"] for cell in notebook["cells"]]
    if any(code.startswith("mo.md(") for code in codes) and not any(MARIMO_IMPORT.search(code) for code in codes):
        notebook["cells"].insert(
            0, {"cell_id": "import", "code": "import marimo as mo", "options": {}}
        )  # a cell that imports marimo is added to .ipynb files, too
    return notebook
