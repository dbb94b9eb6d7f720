"""Cells of .ipynb files that Troupe has written: their code comes back as it was, unless another program changed it.

Jupyter has no place for the code of a Markdown cell. marimo's converter rewrites code, because it takes magics, shell
commands and names that are defined twice for those of a Jupyter notebook. So each cell has a mark in its metadata,
`troupe`: the SHA-256 of its source and, where the source is not the code, the code.
"""

import ast
import hashlib

from marimo._ast.compiler import compile_cell
from marimo._convert.ipynb import from_ir as to_ipynb
from marimo._convert.ipynb import to_ir as from_ipynb
from marimo._schemas.serialization import AppInstantiation, CellDef, Header, NotebookSerializationV1

from conversion.markdown_text import find_text, needs_only_mo

MARK = "troupe"
_create_cell, _bind_cells = to_ipynb._create_ipynb_cell, from_ipynb.bind_cell_metadata


def mend_converters():
    """Makes marimo's writer of .ipynb mark the cells, and makes its reader keep the code of cells
    that are unchanged.
    """
    to_ipynb._create_ipynb_cell = _create_marked
    from_ipynb.bind_cell_metadata = _bind_kept


def _create_marked(*, code, **given):
    node = _create_cell(code=code, **given)
    mark = {"sha256": _digest(node["source"])}
    if node["source"] != code:
        mark["code"] = code
    node["metadata"][MARK] = mark
    return node


def _digest(source) -> str:
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()


def find_kept_code(cell):
    """Returns the code from which Troupe wrote a cell of a file; None when another program wrote or changed it."""
    mark = cell.get("metadata", {}).get(MARK)
    source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
    if not isinstance(mark, dict) or mark.get("sha256") != _digest(source):
        return None
    if cell["cell_type"] == "code":
        return source if "code" not in mark else None
    code = mark.get("code", source)
    # A file could show one text and run another code, so the code must produce exactly that text.
    return code if cell["cell_type"] == "markdown" and isinstance(code, str) and _shows(code, source) else None


def _shows(code, source) -> bool:
    text = find_text(code)
    if text is None or to_ipynb._convert_latex_delimiters_for_jupyter(text) != source:
        return False
    return needs_only_mo(compile_cell(code, cell_id="kept"))


def convert(cells, metadata, convert_others):
    """Returns the notebook of a file, as marimo represents it. `convert_others(cells)` is
    marimo's converter. It gets all cells, because names in one cell change names in others."""
    kept = [find_kept_code(cell) for cell in cells]
    if cells and None not in kept:
        return _read_kept(cells, kept, metadata.get("marimo", {}))
    return convert_others([_told(cell, code) for cell, code in zip(cells, kept, strict=True)])


def _read_kept(cells, codes, metadata):
    bound = _bind_cells(codes, [cell["metadata"] for cell in cells], [False] * len(cells))
    return NotebookSerializationV1(
        app=AppInstantiation(options=metadata.get("app_config", {})),
        header=Header(value=metadata.get("header", "")),
        cells=[CellDef(code=cell.source, name=cell.name, options=cell.config.asdict()) for cell in bound],
    )


def _told(cell, code):
    """Returns the cell for marimo's converter, with the kept code in place of its mark."""
    metadata = {name: value for name, value in cell.get("metadata", {}).items() if name != MARK}
    if code is not None:
        metadata[MARK] = {"kept": code, "rewritten": cell["cell_type"] == "markdown"}
    return {**cell, "metadata": metadata}


def _bind_kept(sources, metadata, hide_flags):
    """Replaces the marimo function that is called after the code was converted: puts kept code
    back.
    """
    cells = _bind_cells(sources, metadata, hide_flags)
    for cell, given in zip(cells, metadata, strict=True):
        if (mark := given.get(MARK)) and (mark["rewritten"] or _same(cell.source, mark["kept"])):
            cell.source = mark["kept"]
    return cells


def _same(converted, code) -> bool:
    """
    Returns whether the converter has left the effect of the code unchanged. The converter comments out code that does
    not parse.
    """
    try:
        return ast.dump(ast.parse(converted)) == ast.dump(ast.parse(code))
    except (SyntaxError, ValueError):
        return True
