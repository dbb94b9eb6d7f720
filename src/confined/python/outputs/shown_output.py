"""Outputs of cells as the server gets them: marimo's output, and in addition its text and table.

Text and table are made here, where the value is, once it is formatted; they are bounded, and a value that cannot be
described has neither. `repr` is the only notebook code called for them.
"""

import html
import re

from marimo._messaging.cell_output import CellOutput
from marimo._messaging.errors import MultipleDefinitionError

from kernel.unencodable import readable
from outputs import output_table, output_text

TAG = re.compile(r"<[^<>]*>")  # without `<`, because each of many would be followed to the end
MAX_MESSAGE_CHARS = 1 << 17


class ShownOutput(CellOutput):
    """An output together with its text (`text/plain`), and its rows if it is a table."""

    text: str | None = None
    table: dict | None = None


def install():
    """Patches marimo in this process; once, in the zygote."""
    CellOutput.errors = staticmethod(of_errors)


def of_value(channel, mimetype, data, value=None):
    """
    Returns the output that shows `value`, in marimo's format. The value is None where only the formatted output is
    known.
    """
    text, table = None, None
    try:
        text = output_text.describe(mimetype, data, value)
        table = output_table.describe(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a __repr__ of the notebook's, which may raise anything
        text = text or output_text.describe(mimetype, data, None)
    return ShownOutput(channel=channel, mimetype=mimetype, data=data, text=text, table=table)


def of_traceback(channel, mimetype, data):
    """Returns the output of a traceback that marimo has coloured. Its text is the text between the
    tags.
    """
    text = html.unescape(TAG.sub("", data)).rstrip() + "\n"
    return ShownOutput(channel=channel, mimetype=mimetype, data=data, text=output_text.cut(text))


def of_errors(errors):
    """Replaces `CellOutput.errors`: gives each error one line, and limits the length of messages.
    """
    for error in errors:
        message = getattr(error, "msg", None)
        if isinstance(message, str) and len(message) > MAX_MESSAGE_CHARS:
            error.msg = f"{message[:MAX_MESSAGE_CHARS]}… ({len(message) - MAX_MESSAGE_CHARS} more characters)"
        elif isinstance(message, str) and message.endswith(("defined in ", " name in ", "): ")) and getattr(error, "raising_cell", None):
            error.msg = f"{message}the cell {error.raising_cell}"  # marimo's front end writes a link there
    text = "\n".join(map(_error_line, errors))
    mimetype = "application/vnd.marimo+error"
    return ShownOutput(channel="marimo-error", mimetype=mimetype, data=errors, text=readable(output_text.cut(text)))


def _error_line(error):
    if isinstance(error, MultipleDefinitionError):
        return f"{error.name} is also defined in {', '.join(error.cells)}"
    kind, message = getattr(error, "exception_type", None), error.describe()
    return message if kind is None or message.startswith(kind) else f"{kind}: {message}"
