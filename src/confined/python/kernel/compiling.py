"""Cells that Python refuses without a located SyntaxError: code that is nested too deeply for the
compiler, or that contains a null byte. marimo shows these errors as unknown ones, with a traceback
of its own or with the text "s". Here they are ordinary syntax errors, for every caller of the
compiler. Code that was compiled to find its structural errors is not compiled again to run: for a cell of 1 MiB this takes as
long as everything else.
"""

import copy
import dataclasses

from marimo._ast.cell import CellConfig, CellOutput, CellStaleState, RunResultStatus, RuntimeState
from marimo._ast.compiler import compile_cell as _compile
from marimo._code_mode import _context
from marimo._runtime import runtime


STATES = {
    "config": CellConfig,
    "_status": RuntimeState,
    "_run_result_status": RunResultStatus,
    "_stale": CellStaleState,
    "_output": CellOutput,
}

_compiled = {}  # cell id -> (code, compiled cell), of the last question about structural errors


def forget_compiled():
    """Forgets the cells of the last question."""
    _compiled.clear()


def compile_for_question(code, cell_id):
    """Returns a compiled cell for a graph that only answers a question. A run of the same code gets a copy of it."""
    cell = compile_cell(code, cell_id=cell_id)
    _compiled[cell_id] = (code, cell)
    return cell


def as_never_run(cell):
    """Returns a copy of a compiled cell in the state of one that was never run."""
    fresh = copy.copy(cell)
    for name, state in STATES.items():
        object.__setattr__(fresh, name, state())
    imports = dataclasses.replace(cell.import_workspace, imported_defs=set())
    object.__setattr__(fresh, "import_workspace", imports)
    return fresh


def compile_cell(code, cell_id, carried_imports=None, filename=None, **kwargs):
    """Compiles like marimo, except that every refusal is a SyntaxError that names its reason."""
    known, cell = _compiled.get(cell_id, (None, None))
    if known == code and not (carried_imports or filename or kwargs):
        return as_never_run(cell)
    try:
        return _compile(code, cell_id=cell_id, carried_imports=carried_imports, filename=filename, **kwargs)
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
