"""Names that Jupyter gives every notebook and marimo does not."""

from marimo._ast.compiler import compile_cell

DISPLAY = "from IPython.display import display"  # marimo's own version of it, which adds to the output of the cell


def with_display(cells) -> list:
    """Returns the cells of a converted notebook, after a cell that imports `display` if some of them use it and none defines it."""
    compiled = [one for one in map(_compile, cells) if one is not None]
    is_used = any("display" in one.refs for one in compiled)
    if not is_used or any("display" in one.defs for one in compiled):
        return cells
    first = 1 if cells[0]["cell_id"] == "setup" else 0  # the setup cell stays the first
    return [*cells[:first], {"cell_id": "display", "code": DISPLAY, "options": {}}, *cells[first:]]


def _compile(cell):
    """Returns the compiled cell; None when it cannot name `display` or does not compile."""
    if "display" not in cell["code"]:
        return None
    try:
        return compile_cell(cell["code"], cell_id=cell["cell_id"])
    except Exception:  # marimo also refuses some code that Python accepts; the cell shows its error when it is opened
        return None
