"""The steps of marimo before and after each cell of a run, without those that have no effect.

- Each hook is wrapped in a span of a tracer that is off, and making that span takes longer than most hooks.
- Each variable of the cell is compared with the types of tables, databases and storages of many libraries. A plain
  value of Python's own types is none of them.
- To find out how a value is shown, marimo looks for eleven methods of its type, and of each type that this inherits
  from. A plain value has none of them.
- To close the figures of matplotlib, marimo compiles and runs a line of code; mostly there is no figure.
- To find a cell that only defines a function or a class, marimo parses the code. Most code contains neither `def` nor
  `class`.
- To find SQL, marimo parses the code after each run. Most code contains neither `sql` nor `execute`.
- Before a cell runs, the registry of things to dispose of is asked for each of its dependents; nearly all have
  nothing.
"""

import contextlib
import sys
import types
import warnings

from marimo import _tracer
from marimo._ast.cell import CellImpl
from marimo._output import formatting
from marimo._output.formatters import repr_formatters
from marimo._runtime.cell_lifecycle_registry import CellLifecycleRegistry
from marimo._runtime.runner import (
    hooks_on_finish,
    hooks_post_execution,
    hooks_pre_execution,
    hooks_preparation,
)

# types whose values can have no attributes of their own
PLAIN = frozenset({bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple, type(None)})
NO_DATA = PLAIN | {types.BuiltinFunctionType, types.FunctionType, types.ModuleType, type}
SEARCHES = "get_datasets_from_variables get_engines_from_variables get_storage_backends_from_variables"


def install():
    """Patches marimo in this process; once, in the zygote, before anything else that wraps these hooks."""
    if isinstance(_tracer.kernel_tracer, _tracer.MockTracer):
        for module in (hooks_on_finish, hooks_post_execution, hooks_pre_execution, hooks_preparation):
            _remove_spans(module)
    for name in SEARCHES.split():
        setattr(hooks_post_execution, name, _in_possible_data(getattr(hooks_post_execution, name)))
    formatting.is_callable_method = repr_formatters.is_callable_method = _unless_plain(formatting.is_callable_method)
    reset = hooks_post_execution._reset_matplotlib_context
    hooks = hooks_post_execution.POST_EXECUTION_HOOKS
    hooks[hooks.index(reset)] = _if_there_are_figures(reset)
    CellImpl.toplevel_variable = property(_unless_nothing_is_defined(CellImpl.toplevel_variable.fget))
    CellImpl._get_sqls = _unless_no_sql(CellImpl._get_sqls)
    CellLifecycleRegistry.dispose = _unless_empty(CellLifecycleRegistry.dispose)


def _remove_spans(module):
    for name, member in list(vars(module).items()):
        if isinstance(member, types.FunctionType):
            setattr(module, name, _without_span(member))
        elif isinstance(member, list):
            member[:] = map(_without_span, member)


def _without_span(hook):
    is_span = getattr(getattr(hook, "__code__", None), "co_filename", None) == contextlib.__file__
    return hook.__wrapped__ if is_span else hook


def _in_possible_data(search):
    def search_in_others(variables):
        others = [variable for variable in variables if type(variable[1]) not in NO_DATA]
        return search(others) if others else []

    return search_in_others


def _unless_plain(is_callable_method):
    return lambda value, name: type(value) not in PLAIN and is_callable_method(value, name)


def _unless_empty(dispose):
    def dispose_if_any(self, cell_id, deletion):
        if cell_id in self.registry:
            dispose(self, cell_id, deletion)

    return dispose_if_any


def _if_there_are_figures(reset):
    def reset_if_there_are_figures(cell, ctx, run_result):
        figures = sys.modules.get("marimo._output.mpl")
        if figures is None or figures.Gcf.figs:
            reset(cell, ctx, run_result)

    return reset_if_there_are_figures


def _unless_nothing_is_defined(find_variable):
    return lambda cell: find_variable(cell) if "def" in cell.code or "class" in cell.code else None


def _unless_no_sql(find_sqls):
    def find_sqls_if_any(cell, raw=False):
        # Python reads letters such as a full-width s as ASCII ones, but only in code with other than ASCII characters.
        if cell.code.isascii() and "sql" not in cell.code and "execute" not in cell.code:
            # As after marimo's parser, Python shows a warning again that an earlier cell has shown.
            with warnings.catch_warnings():
                return []
        return find_sqls(cell, raw=raw)

    return find_sqls_if_any
