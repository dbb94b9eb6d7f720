"""Features of Jupyter cells that marimo's converter lacks: raw text, which is not code, and images attached to
Markdown."""

import re
from urllib.parse import unquote

ATTACHMENT = re.compile(r"attachment:([^\s)>\"']+)")
IMAGE_TYPE = re.compile(r"image/[a-z0-9.+-]{1,60}", re.I)
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
FENCE = re.compile(r"`{3,}")


def without_raw_and_attachments(cell) -> dict:
    """Returns the cell itself, or a Markdown cell that looks the same."""
    source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
    if cell["cell_type"] == "raw":
        return {"cell_type": "markdown", "source": fenced(source) if source.strip() else "", "metadata": {}}
    attachments = cell.get("attachments")
    if cell["cell_type"] != "markdown" or not isinstance(attachments, dict):
        return cell

    def inline(found):
        data = find_image(attachments.get(found[1], attachments.get(unquote(found[1]))))
        return found[0] if data is None else data

    return {**cell, "source": ATTACHMENT.sub(inline, source)}


def fenced(text) -> str:
    """Returns Markdown that shows the text unchanged."""
    fence = "`" * (1 + max([2, *map(len, FENCE.findall(text))]))
    return f"{fence}text\n{text}\n{fence}"


def find_image(bundle):
    """Returns the first image of a MIME bundle as a `data:` URL; None when there is none."""
    for kind, data in bundle.items() if isinstance(bundle, dict) else ():
        text = "".join(data) if isinstance(data, list) and all(isinstance(one, str) for one in data) else data
        if IMAGE_TYPE.fullmatch(kind) and isinstance(text, str) and BASE64.fullmatch(text):
            return f"data:{kind};base64,{''.join(text.split())}"
    return None
