"""Finds the inline metadata of a script (PEP 723): the comment between `# /// script` and `# ///`."""

from typing import NamedTuple

BEGINNING, ENDING = "# /// script", "# ///"


class ScriptBlock(NamedTuple):
    """The offsets of the block in the text, without its last line end, and the lines between its first and its last."""

    start: int
    end: int
    lines: list


def find_block(text, trailing=""):
    """
    Returns the first block of the text; None without one. The block ends at the last ending in its comment. The first
    and the last line may have the characters of `trailing` at their ends.

    The regular expression of the PEP would read the comment again from each beginning in it. If the first beginning
    in a comment has no ending, the comment has no block, so here each line is read once.
    """
    lines = text.split("\n")
    offset, at = 0, 0
    while at < len(lines):
        begins, start, ending, first = lines[at].rstrip(trailing) == BEGINNING, offset, None, at
        while True:
            if begins and at > first + 1 and lines[at].rstrip(trailing) == ENDING:
                ending = at, offset + len(lines[at])
            offset += len(lines[at]) + 1
            at += 1
            if not begins or at == len(lines) or not (lines[at] == "#" or lines[at].startswith("# ")):
                break
        if ending is not None:
            last, end = ending
            return ScriptBlock(start, end, lines[first + 1 : last])
    return None
