"""Markdown cells, `mo.md("…")`, as text and back, so that the text stays exactly as `mo.md` shows it.

marimo's converters copy a text from one kind of string literal into another without escaping it: `\\times` of LaTeX
becomes a tab and `imes`. They also drop arguments such as `size`, and the two spaces at the end of a line that mean a
line break.
"""

import ast
import textwrap

from marimo._ast import codegen
from marimo._convert.ipynb import from_ir as to_ipynb
from marimo._convert.ipynb import to_ir as from_ipynb
from marimo._convert.markdown import from_ir as to_md
from marimo._convert.markdown import to_ir as from_md

CELL_SEPARATOR = "<!---->"  # the separator in marimo's .md between two texts


def mend_converters():
    """Makes marimo's converters use the functions of this module, and leaves Markdown cells of .py as they were written."""
    codegen.format_markdown = lambda cell: cell.code
    to_ipynb.get_markdown_from_cell = lambda cell, code: find_text(code) if needs_only_mo(cell) else None
    to_ipynb._extract_markdown_prefix = find_prefix
    to_md.get_markdown_from_cell = lambda cell, code: find_prose(code) if needs_only_mo(cell) else None
    from_ipynb.markdown_to_marimo = make_call
    from_md.markdown_to_marimo = make_call


def needs_only_mo(cell) -> bool:
    return cell.refs == {"mo"} and not cell.defs


def find_text(code):
    """Returns the text of a cell that does nothing but show Markdown; None for other cells."""
    value = _find_literal(code)
    return None if value is None else _shown(value)


def find_prose(code):
    """
    Returns the text of a cell for .md; None when the cell has to be a block of code there. It has to be one when the
    cell has more code than the call, or when a reader of .md would split the text into two cells or drop its first
    spaces.
    """
    value = _find_literal(code, alone=True)
    text = None if value is None else _shown(value)
    if not text or text != text.strip() or any(line.strip() == CELL_SEPARATOR for line in text.split("\n")):
        return None
    return text


def _find_literal(code, alone=False):
    """`alone`: whether comments around the call count as other code."""
    try:
        (statement,) = ast.parse(code).body
    except (SyntaxError, ValueError):
        return None
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name("mo"), "md"), [argument], [])) if (
            not alone or ast.get_source_segment(code, statement) == code.strip()
        ):
            return _find_constant(argument)
    return None


def _find_constant(node):
    match node:
        case ast.Constant(str(value)) | ast.JoinedStr([ast.Constant(str(value))]):
            return value
    return None


def _shown(value) -> str:
    """Returns the text as `mo.md` cleans it, with its tabs."""
    first, *rest = value.split("\n")
    lines = [first.lstrip(), *textwrap.dedent("\n".join(rest)).split("\n")]
    return "\n".join(lines).strip("\n")


def find_prefix(code) -> str:
    """
    Returns a prefix of string literals. With it, a program that knows only prefixes (marimo, reading .ipynb) reads
    the text back correctly.
    """
    return "r" if "\\" in (find_text(code) or "") or _has_raw_literal(code) else ""


def _has_raw_literal(code) -> bool:
    try:
        argument = ast.parse(code).body[0].value.args[0]
    except (SyntaxError, ValueError, IndexError, AttributeError):
        return False
    literal = ast.get_source_segment(code, argument) or ""
    return "r" in literal[: literal.find(literal[-1:])].lower()


def make_call(source, prefix="r") -> str:
    """Returns the code of a cell that shows this text. `prefix` is that of the string literal in
    a file. It is kept if the literal then has that text."""
    text = source or " "  # six quotes in a row would be read differently
    prefix = "r" if "r" in prefix.lower() or "\\" in text else ""
    for quotes in ('"""', "'''"):
        if quotes not in text:
            return codegen.construct_markdown_call(text, quotes, prefix)
    return codegen.construct_markdown_call(text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"'), '"""', "")
