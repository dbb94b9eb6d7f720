"""Notes elements that fail when a command of the server sets their value. marimo only prints the traceback, so the command would
look as if every value had been set."""

import sys

from marimo._plugins.ui._core.ui_element import UIElement

from kernel.element_files import MissingFile
from kernel.kernel_state import STATE
from kernel.unencodable import readable

MAX_REASON_CHARS = 500


def install():
    """Patches marimo in this process; once, in the zygote."""
    UIElement._update = _update


def _update(self, value):
    """
    Sets the value. If a file is missing, the element shows a sentence and not a traceback, because no code of the
    notebook has failed.
    """
    STATE.updates += 1
    try:
        _set(self, value)
    except MissingFile as missing:
        if STATE.updates > 1:
            raise
        sys.stderr.write(f"{missing}\n")
    finally:
        STATE.updates -= 1


def _set(self, value):
    """
    Sets the value as marimo does, with two differences. A failure is noted. A value that the element refuses does not
    become its value in the page, because `mo.ui.array` ignores a value that its element already has.
    """
    before, self._value_frontend = self._value_frontend, value
    try:
        self._value = self._convert_value(value)
    except Exception as error:
        self._value_frontend = before
        _note(self._id, error, is_set=False)
        raise
    try:
        if self._on_change is not None:
            self._on_change(self._value)
    except Exception as error:
        _note(self._id, error, is_set=True)
        raise


def _note(element_id, error, is_set):
    """An element of `mo.ui.array` fails within the array, which then fails with the same error: only the first is noted. Cells
    that run because of the command may update elements too, and report their own errors."""
    failures = STATE.element_failures
    if failures is None or STATE.run_depth > 0 or next(reversed(failures.values()), (None,))[0] is error:
        return
    failures[element_id] = (error, (_describe(error), is_set))


def _describe(error):
    if isinstance(error, MissingFile):
        return readable(str(error)[:MAX_REASON_CHARS])
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # notebook code may define the class of the error
        text = type(error).__name__
    return readable(text[:MAX_REASON_CHARS])


def begin_noting():
    STATE.element_failures = {}


def take_failures():
    """Returns {id of an element: (reason, whether it has the new value)} of the failures of the present command, and stops noting."""
    failures, STATE.element_failures = STATE.element_failures or {}, None
    return {element_id: failure for element_id, (_, failure) in failures.items()}
