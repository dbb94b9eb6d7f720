"""
Decides which outputs leave the kernel. Notebook code may give any value for any MIME type; the server accepts only
text. It treats any other value as a breach of the protocol, and ends the kernel. Values that can be shown become text
here: bytes become a data URL, values of a JSON type become JSON, and of `(data, metadata)`, which IPython documents
for its `_repr_*_` methods, the data is shown. Any other value is discarded, with a message on the cell's stderr and a
warning to the server. The cell itself has not failed.
"""

import base64
import functools
import re
import traceback

from marimo._messaging import tracebacks
from marimo._messaging.cell_output import CellChannel, CellOutput
from marimo._messaging.msgspec_encoder import encode_json_bytes
from marimo._messaging.notification import CellNotification
from marimo._messaging.notification_utils import CellNotificationUtils, broadcast_notification
from marimo._output import formatting
from marimo._runtime.context import get_context
from marimo._runtime.runner import hooks_post_execution
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonTracebackLexer

from kernel.kernel_state import STATE
from kernel.unencodable import readable
from outputs import shown_output
from outputs.output_text import MIMEBUNDLE

MIME_TYPE = re.compile(r"[a-z0-9][\w.+-]{0,99}/[\w.+-]{1,100}(;[ -~]{0,100})?", re.IGNORECASE)
# the beginnings of strings, other than base64, that a browser shows for a media type
SHOWN_AS_IS = ("data:", "http:", "https:", "blob:", "./", "/", "<", "{")
MAX_TRACEBACK_CHARS = 100_000
MAX_REMEMBERED_CHARS = 4_000
LEXER, FORMATTER = PythonTracebackLexer(), HtmlFormatter()
MEDIA = ("image/", "audio/", "video/", "application/pdf")


class Unsendable(Exception):
    """Raised when an output cannot be sent. The message is the end of a sentence that begins with "because"."""


def install():
    """Patches marimo in this process; once, in the zygote."""
    CellNotificationUtils.broadcast_output = staticmethod(broadcast_output)
    CellNotificationUtils.broadcast_console_output = staticmethod(broadcast_console_output)
    formatting.try_format = _never_raise(formatting.try_format)
    hooks = hooks_post_execution.POST_EXECUTION_HOOKS
    hooks[:] = map(_contain, hooks)
    hooks_post_execution.format_exception_message = _never_fail(hooks_post_execution.format_exception_message)
    tracebacks._highlight_traceback = highlight_traceback


def broadcast_output(channel, mimetype, data, cell_id, status, stream=None):
    """Replaces marimo's function: reports the output of a cell."""
    cell_id, shown = _find_cell(cell_id), data
    try:
        mimetype, data = admit(mimetype, data)
    except Unsendable as reason:
        warn(cell_id, "An output", reason, stream)
        mimetype, data = "text/plain", ""
    mimetype, data = CellNotificationUtils.maybe_truncate_output(mimetype, data)
    output = shown_output.of_value(channel, mimetype, data, STATE.take_shown(shown))
    broadcast_notification(CellNotification(cell_id=cell_id, output=output, status=status), stream=stream)


def broadcast_console_output(channel, mimetype, data, cell_id, status, stream=None):
    """Replaces marimo's function: reports an output among a cell's console output, such as a figure of `plt.show()`."""
    cell_id = _find_cell(cell_id)
    try:
        mimetype, data = admit(mimetype, data)
    except Unsendable as reason:
        warn(cell_id, "A figure", reason, stream)
        return
    mimetype, data = CellNotificationUtils.maybe_truncate_output(mimetype, data)
    entry = shown_output.of_value(channel, mimetype, data)
    broadcast_notification(CellNotification(cell_id=cell_id, console=entry, status=status), stream=stream)


def _find_cell(cell_id):
    return cell_id if cell_id is not None else get_context().stream.cell_id


def warn(cell_id, what, reason, stream=None):
    """Reports that an output of a cell is lost."""
    text = f"{what} of this cell is not shown, because {reason}\n"
    line = CellOutput(channel=CellChannel.STDERR, mimetype="text/plain", data=text)
    broadcast_notification(CellNotification(cell_id=cell_id, console=line), stream=stream)
    STATE.outbox.say(op="bridge-warning", cell_id=cell_id, what=what, reason=readable(str(reason)))


def admit(mimetype, data) -> tuple[str, str]:
    """Returns the type and data as text for the server. Raises Unsendable when there is none."""
    if not isinstance(mimetype, str):
        raise Unsendable(f"its MIME type is of type {_name(mimetype)}, where text is needed.")
    mimetype = str.__str__(mimetype)
    if not MIME_TYPE.fullmatch(mimetype):
        raise Unsendable(f"{_cut(mimetype)!r} is not a MIME type.")
    if isinstance(data, str):
        return mimetype, _media_text(mimetype, str.__str__(data))
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], dict) and not isinstance(data[0], tuple):
        return admit(mimetype, data[0])
    if isinstance(data, (bytes, bytearray, memoryview)):
        return mimetype, _bytes_text(mimetype, bytes(data))
    if data is None:
        raise Unsendable(f"there is nothing to show as {mimetype}: its value is None.")
    if _is_json(mimetype):
        return mimetype, _json_text(mimetype, data)
    raise Unsendable(f"the value to show as {mimetype} is of type {_name(data)}, where text or bytes are needed.")


def _media_text(mimetype, text):
    """Returns a picture as a data URL, which marimo's front end expects. IPython gives it as base64.
    """
    if not mimetype.startswith(MEDIA) or text.startswith(SHOWN_AS_IS) or not text:
        return text
    return f"data:{mimetype};base64,{text}" if re.fullmatch(r"[A-Za-z0-9+/\s]+={0,2}\s*", text[:400]) else text


def _bytes_text(mimetype, data):
    if mimetype.startswith("text/") or _is_json(mimetype) or mimetype == "image/svg+xml":
        return data.decode("utf-8", "replace")
    return f"data:{mimetype};base64,{base64.b64encode(data).decode()}"


def _is_json(mimetype):
    return mimetype.split(";")[0].endswith(("/json", "+json")) or mimetype == MIMEBUNDLE


def _json_text(mimetype, data):
    try:
        return encode_json_bytes(_plain_bundle(data) if mimetype == MIMEBUNDLE else data).decode()
    except Unsendable:
        raise
    except Exception as error:  # marimo's encoder calls methods of the value, which may raise
        raise Unsendable(f"the value to show as {mimetype} cannot be JSON: {_describe(error)}.") from None


def _plain_bundle(bundle):
    """
    Returns the members of a MIME bundle, each converted as if it were the whole output. marimo's own metadata are not
    converted.
    """
    if not isinstance(bundle, dict):
        raise Unsendable(f"a MIME bundle is needed as a dict, and this one is of type {_name(bundle)}.")
    plain = {}
    for mimetype, data in bundle.items():
        is_type = isinstance(mimetype, str) and "/" in mimetype
        if not is_type or (_is_json(mimetype) and not isinstance(data, bytes)):
            plain[mimetype] = data
        elif data is not None:
            kind, text = admit(mimetype, data)
            plain[kind] = text
    return plain


def _never_raise(try_format):
    """
    Wraps `try_format` so that it never raises. marimo catches exceptions of formatters, but neither those of the
    search for a formatter, nor a `__repr__` that ends the program.
    """

    def try_format_safely(obj, include_opinionated=None):
        try:
            formatted = try_format(obj, include_opinionated)
            STATE.shown = (formatted.data, obj)
            return formatted
        except KeyboardInterrupt:
            raise
        except BaseException:
            return formatting.FormattedOutput(mimetype="text/plain", data="", traceback=traceback.format_exc())

    return try_format_safely


def _contain(hook):
    """
    Wraps `hook` so that it raises only KeyboardInterrupt. marimo's hooks look at a cell's values after its run. If a
    value raises, only its cell loses its output; in unmodified marimo the whole run would end.
    """

    def run_hook(cell, ctx, run_result):
        try:
            hook(cell, ctx, run_result)
        except KeyboardInterrupt:
            raise
        except BaseException:
            tracebacks.write_traceback(traceback.format_exc())
            if hook is hooks_post_execution._broadcast_outputs:
                CellNotificationUtils.broadcast_empty_output(cell.cell_id, None)

    return run_hook


def _never_fail(format_message):
    """Wraps `format_message` so that it never raises. An exception's own `__str__` may raise; the failed cell still
    needs a message."""

    def format_safely(error):
        try:
            return str.__str__(format_message(error))
        except Exception as failure:
            return f"its message cannot be read: {type(failure).__name__}"

    return format_safely


def highlight_traceback(text):
    """Replaces marimo's function: returns a traceback in colours. Colouring takes seconds for
    each megabyte, so a long traceback is shortened. The lexer and the formatter are made only
    once, because making them takes longer than colouring a short traceback. A cell that fails
    or is cancelled again mostly has the same traceback."""
    if len(text) > MAX_TRACEBACK_CHARS:
        half = MAX_TRACEBACK_CHARS // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
    coloured = _highlight_again(text) if len(text) <= MAX_REMEMBERED_CHARS else highlight(text, LEXER, FORMATTER)
    return f'<span class="codehilite">{coloured}</span>'


@functools.lru_cache(maxsize=16)
def _highlight_again(text):
    return highlight(text, LEXER, FORMATTER)


def _name(value):
    return _cut(type(value).__name__)


def _describe(error):
    try:
        return _cut(f"{type(error).__name__}: {error}")
    except Exception:
        return _name(error)


def _cut(text, limit=200):
    return text if len(text) <= limit else f"{text[:limit]}…"
