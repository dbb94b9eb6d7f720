"""Cells that Python refuses without a located SyntaxError: code that is nested too deeply for the
compiler, or that contains a null byte. marimo shows these errors as unknown ones, with a traceback
of its own or with the text "s". Here they are ordinary syntax errors, for every caller of the
compiler.
"""

from marimo._ast.compiler import compile_cell as _compile
from marimo._code_mode import _context
from marimo._runtime import runtime


def compile_cell(code, *args, **kwargs):
    """Compiles like marimo, except that every refusal is a SyntaxError that names its reason."""
    try:
        return _compile(code, *args, **kwargs)
    except SyntaxError as error:
        if error.lineno is not None or type(error) is not SyntaxError:  # marimo's own subclasses name their reason
            raise
        message = str(error)
    except (RecursionError, MemoryError):
        message = "the code is nested too deeply"
    except ValueError as error:
        message = str(error)
    raise SyntaxError(message, ("<cell>", 1, None, None))


def install():
    """Patches marimo in this process; once, in the zygote."""
    _context.compile_cell = runtime.compile_cell = compile_cell
