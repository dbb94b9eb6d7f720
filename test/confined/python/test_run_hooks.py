"""The steps after each cell that the host leaves out have no effect."""

import unittest

from support import Host


def setUpModule():
    global host
    host = Host()
    unittest.addModuleCleanup(host.stop)


def evaluated(name):
    return f"from marimo._runtime.runner import hooks_post_execution as h, hooks_on_finish as f\nprint({name})"


class RunHooks(unittest.TestCase):
    def test_no_hook_opens_a_span_of_a_tracer_that_is_off(self):
        kernel = host.open({})
        spans = "[x for m in (h, f) for x in vars(m).values() if getattr(x, '__code__', None) and 'contextlib' in x.__code__.co_filename]"
        self.assertEqual(kernel.scratchpad(evaluated(spans)).printed, "[]\n")

    def test_a_table_among_plain_values_is_still_found(self):
        kernel = host.open({})
        tables = "[t.name for t in h.get_datasets_from_variables([('a', 1), ('b', pandas.DataFrame({'x': [1]})), ('c', [1])])]"
        self.assertEqual(kernel.scratchpad("import pandas\n" + evaluated(tables)).printed, "['b']\n")

    def test_figures_of_a_cell_are_closed_before_the_next_one(self):
        kernel = host.open({"a": "import matplotlib.pyplot as plt\nplt.figure()", "b": "print(len(plt.get_fignums()))"})
        kernel.run("a")
        self.assertEqual(kernel.run("b").printed, "0\n")

    def test_cells_that_only_define_something_are_found_and_no_others(self):
        kernel = host.open({})
        codes = ["def f(): pass", "async def f(): pass", "class F: pass", "undefined = 1", "x = 'def f(): pass'", "x = 1"]
        found = "[compile_cell(code, cell_id='c').toplevel_variable is not None for code in codes]"
        code = f"from marimo._ast.compiler import compile_cell\ncodes = {codes}\n" + evaluated(found)
        self.assertEqual(kernel.scratchpad(code).printed, "[True, True, True, False, False, False]\n")

    def test_values_are_shown_as_marimo_shows_them(self):
        values = "1 1.5 True None 'a' b'a' (1,2) [1] {'a':1} {1} 1j int Shown() len".split()
        kernel = host.open({})
        code = f"""
from marimo._output import formatting
from marimo._output.formatters import repr_formatters
from marimo._utils import methods
class Shown(int):
    def _repr_html_(self): return "<b>"
def show(value):
    shown = formatting.try_format(value)
    return shown.mimetype, shown.data
values = [{", ".join(values)}]
mine = [*map(show, values)]
formatting.is_callable_method = repr_formatters.is_callable_method = methods.is_callable_method
print(mine == [*map(show, values)], mine[-2][0])"""
        self.assertEqual(kernel.scratchpad(code).printed, "True text/html\n")

    def test_sql_is_found_wherever_it_is_in_code(self):
        kernel = host.open({})
        codes = ["db.execute('a')", "x = [mo.sql(f'b')]", "mo.\uff53ql('c')", "x = 'query'"]
        found = "[compile_cell(code, cell_id='c').sqls for code in codes]"
        code = f"from marimo._ast.compiler import compile_cell\ncodes = {codes}\n" + evaluated(found)
        self.assertEqual(kernel.scratchpad(code).printed, "[['a'], ['b'], ['c'], []]\n")

    def test_a_warning_is_shown_in_each_cell_that_causes_it(self):
        kernel = host.open({"a": "import warnings\nwarn = warnings.warn", "b": "warn('look')", "c": "warn('look')"})
        shown = [message for message in kernel.run("a", "b", "c").messages if "look" in str(message.get("console"))]
        self.assertEqual([message["cell_id"] for message in shown], ["b", "c"])

    def test_a_database_is_still_found(self):
        kernel = host.open({})
        engines = "[n for n, _ in h.get_engines_from_variables([('a', 1), ('b', sqlite3.connect(':memory:'))])]"
        self.assertEqual(kernel.scratchpad("import sqlite3\n" + evaluated(engines)).printed, "['b']\n")


if __name__ == "__main__":
    unittest.main()
