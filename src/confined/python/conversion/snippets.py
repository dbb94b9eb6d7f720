"""The snippets that marimo's package has, in the form in which marimo's page shows them.

marimo's own reader runs the Markdown cells of the snippets. This one shows their texts and runs nothing.
"""

from pathlib import Path

import marimo
import msgspec
from marimo._output.md import md

from conversion import markdown_text
from conversion.notebook_files import read_notebook

MAX_FILES = 1_000
MAX_FILE_BYTES = 64 * 1024


def list_snippets() -> str:
    """Returns the snippets as JSON, sorted by their titles."""
    folder = Path(marimo.__file__).parent / "_snippets" / "data"
    paths = sorted(folder.glob("*.py"))[:MAX_FILES]
    texts = [path.read_text(encoding="utf-8") for path in paths if path.stat().st_size <= MAX_FILE_BYTES]
    snippets = sorted((_snippet(text) for text in texts), key=lambda snippet: snippet["title"])
    return msgspec.json.encode({"snippets": snippets}).decode()


def _snippet(text) -> dict:
    """Returns the snippet in the text of a file. Its title is the first heading."""
    title, sections = "", []
    for cell in read_notebook(text, "py")["cells"]:
        code = cell["code"]
        if code == "import marimo as mo":  # notebooks have it already
            continue
        prose = markdown_text.find_text(code)
        if prose is None:
            sections.append({"id": cell["cell_id"], "html": None, "code": code})
            continue
        title = title or _heading(prose)
        sections.append({"id": cell["cell_id"], "html": _html(prose), "code": None})
    return {"title": title, "sections": sections}


def _heading(prose) -> str:
    headings = (line.lstrip("#").strip() for line in prose.split("\n") if line.startswith("#"))
    return next(headings, "")


def _html(prose) -> str:
    return md(prose).text
