/**
 * Code that reads, edits and runs the notebook; each situation has its own notebook. Two blocks in one call are left out:
 * in 10 of 45 tries marimo's server lost the cell of the second block, although it reported that cell as created.
 */
import { block, blockWith } from '#test/support/code-block.ts';
import type { Situation } from './situation.ts';

const READ_ALL = '[cell.code for cell in ctx.cells]';
const AFTER = 'after = "reached"\nprint(after)';

/** The situations by name. */
export const NOTEBOOK_SITUATIONS: Readonly<Record<string, Situation>> = {
  'a cell is created in an empty notebook': { calls: [block('ctx.create_cell("x = 1")')] },
  'a cell is created and run': {
    calls: [block('ctx.run_cell(ctx.create_cell("print(\'ran\')\\n7", name="seven"))')],
  },
  'cells are created in a chain, before, after and at the end': {
    cells: { a: 'x = 1' },
    calls: [
      block(
        'one = ctx.create_cell("one = 1", after="a")',
        'two = ctx.create_cell("two = one + 1", after=one)',
        'ctx.create_cell("zero = 0", before="a")',
        'ctx.create_cell("end = two")',
        'ctx.run_cell(two)',
      ),
    ],
  },
  'a cell is created after one that is named in the same block': {
    calls: [
      block(
        'ctx.create_cell("x = 1", name="first")',
        'ctx.create_cell("y = 2", after="first")',
        'ctx.create_cell("z = 3", before="first")',
      ),
    ],
  },
  'a cell is edited without a run': {
    cells: { a: 'x = 1', b: 'y = x' },
    calls: [block('ctx.cells["a"].code', 'ctx.edit_cell("a", code="x = 2")'), 'print(globals().get("x"), y)'],
  },
  'a cell is edited and run, and its dependent is requested': {
    cells: { a: 'x = 1', b: 'y = x\nprint("y", y)' },
    calls: [
      block(READ_ALL, 'ctx.edit_cell("a", code="x = 2")', 'ctx.run_cell("a")', 'ctx.run_cell("b")'),
      'print(x, y)',
    ],
  },
  'only the requested cell runs, with its stale ancestors': {
    cells: { a: 'x = 1', b: 'y = x', c: 'z = y', d: 'w = y' },
    calls: [block(READ_ALL, 'ctx.edit_cell("a", code="x = 2")', 'ctx.run_cell("c")'), 'print(x, y, z, w)'],
  },
  'the statuses of cells around an edit': {
    cells: { a: 'x = 1', b: 'y = x', c: '1 / 0' },
    calls: [
      block(
        'print([str(cell.status) for cell in ctx.cells])',
        READ_ALL,
        'ctx.edit_cell("a", code="x = 3")',
        'ctx.run_cell("a")',
      ),
      block('print([str(cell.status) for cell in ctx.cells])'),
    ],
  },
  'a cell is deleted, and its variables with it': {
    cells: { a: 'x = 1', b: 'y = x' },
    calls: [block('ctx.delete_cell("a")'), 'print("x" in globals(), y)'],
  },
  'all cells are deleted': {
    cells: { a: 'x = 1', b: 'y = 2' },
    calls: [block('for cell in ctx.cells: ctx.delete_cell(cell.id)')],
  },
  'a cell is deleted and its variable defined again in the same block': {
    cells: { a: 'x = 1', b: 'y = x' },
    calls: [
      block(
        'ctx.delete_cell("a")',
        'new = ctx.create_cell("x = 5")',
        'ctx.run_cell(new)',
        'ctx.run_cell("b")',
      ),
      'print(x, y)',
    ],
  },
  'cells are moved': {
    cells: { a: 'x = 1', b: 'y = 2', c: 'z = 3' },
    calls: [block('ctx.move_cell("c", before="a")', 'ctx.move_cell("a", after="b")')],
  },
  'names are given and changed': {
    cells: { a: 'x = 1', b: 'y = 2' },
    calls: [
      block('ctx.edit_cell("a", name="first")'),
      block('ctx.edit_cell("first", name="second")', 'print(ctx.cells["first"].id)'),
      block('print(ctx.cells["second"].id, "first" in ctx.cells)'),
    ],
  },
  'settings are changed one by one, and the others are kept': {
    cells: { a: 'x = 1' },
    calls: [
      block('ctx.edit_cell("a", hide_code=True)'),
      block('ctx.edit_cell("a", column=2)'),
      block('ctx.edit_cell("a", expand_output=True)', 'ctx.edit_cell("a", hide_code=False)'),
      block('ctx.create_cell("y = 1", disabled=True, hide_code=False, column=1)'),
    ],
  },
  'a disabled cell is asked to run': {
    cells: { a: 'x = 1\nprint("ran")', b: 'y = x' },
    calls: [block('ctx.edit_cell("a", disabled=True)'), block('ctx.run_cell("a")')],
  },
  'a name is defined twice, not validated': {
    cells: { a: 'x = 1' },
    calls: [
      blockWith('skip_validation=True', 'ctx.create_cell("x = 2", name="twice")'),
      'print(globals().get("x"))',
    ],
  },
  'an edit next to an old double definition': {
    cells: { a: 'x = 1' },
    calls: [
      blockWith('skip_validation=True', 'ctx.create_cell("x = 2", name="twice")'),
      block('ctx.create_cell("fine = 1")'),
    ],
  },
  'a double definition is corrected': {
    cells: { a: 'x = 1' },
    calls: [
      blockWith('skip_validation=True', 'ctx.create_cell("x = 2", name="twice")'),
      block('ctx.edit_cell("twice", code="z = 2")', 'ctx.run_cell("a")', 'ctx.run_cell("twice")'),
      'print(x, z)',
    ],
  },
  'a cell that refers to itself': { calls: [block('ctx.run_cell(ctx.create_cell("n = n + 1"))')] },
  'code that does not parse, not validated': {
    calls: [blockWith('skip_validation=True', 'ctx.create_cell("def :")')],
  },
  'an exception after the block': {
    calls: [`${block('ctx.create_cell("y = 1")')}raise ValueError("mine")`],
  },
  'a cell that fails': { calls: [block('ctx.run_cell(ctx.create_cell("print(\'about to\')\\n1 / 0"))')] },
  'a cell that fails, and code after the block': {
    calls: [`${block('ctx.run_cell(ctx.create_cell("1 / 0"))')}${AFTER}`],
  },
  'two cells that fail': {
    calls: [block('ctx.run_cell(ctx.create_cell("1 / 0"))', 'ctx.run_cell(ctx.create_cell("{}[0]"))')],
  },
  'a cell after one that fails': {
    cells: { a: 'x = 1', b: 'y = 1 / x', c: 'z = y' },
    calls: [block(READ_ALL, 'ctx.edit_cell("a", code="x = 0")', 'ctx.run_cell("c")')],
  },
  'a failed cell is corrected': {
    calls: [
      block('ctx.run_cell(ctx.create_cell("v = 1 / 0", name="v"))'),
      block('ctx.edit_cell("v", code="v = 1")', 'ctx.run_cell("v")'),
      'print(v)',
    ],
  },
  'a cell after mo.stop': {
    cells: { a: 'x = 1', b: 'import marimo as mo\nmo.stop(x == 0)\ny = x', c: 'z = y' },
    calls: [block(READ_ALL, 'ctx.edit_cell("a", code="x = 0")', 'ctx.run_cell("c")')],
  },
  'a cell that exits': { calls: [block('ctx.run_cell(ctx.create_cell("import sys\\nsys.exit(1)"))')] },
  'a cell that prints to stdout and stderr': {
    calls: [block('ctx.run_cell(ctx.create_cell("import sys\\nprint(1)\\nprint(2, file=sys.stderr)"))')],
  },
  'a cell that awaits': {
    calls: [block('ctx.run_cell(ctx.create_cell("import asyncio\\nprint(await asyncio.sleep(0, 3))"))')],
  },
  'a cell that is run again': {
    cells: { a: 'print("again")' },
    calls: [block('ctx.run_cell("a")'), block('ctx.run_cell("a")')],
  },
  'outputs and errors of cells are read': {
    cells: { a: 'print("out")\n42', b: '1 / 0' },
    calls: [
      block(
        'print(ctx.cells["a"].output.mimetype, [c.data for c in ctx.cells["a"].console_outputs])',
        'print([(e.kind, e.msg) for e in ctx.cells["b"].errors])',
      ),
    ],
  },
  'globals and the graph are read': {
    cells: { a: 'x = 1', b: 'y = x' },
    calls: [
      block(
        'print(ctx.globals["x"], sorted(ctx.graph.cells), ctx.graph.children["a"])',
        'ctx.run_cell(ctx.create_cell("new = 5"))',
      ).concat('print(ctx.globals["new"], "new" in globals())'),
    ],
  },
  'code is read in an earlier call': {
    cells: { a: 'x = 1' },
    calls: [block('ctx.cells["a"].code'), block('ctx.edit_cell("a", code="x = 2")')],
  },
  'code is deliberately edited unread': {
    cells: { a: 'x = 1' },
    calls: [blockWith('skip_staleness_check=True', 'ctx.edit_cell("a", code="x = 2")')],
  },
  'a cell is edited twice in a block': {
    cells: { a: 'x = 1' },
    calls: [
      block(
        READ_ALL,
        'ctx.edit_cell("a", code="x = 2")',
        'ctx.edit_cell("a", code="x = 3")',
        'ctx.run_cell("a")',
      ),
      'print(x)',
    ],
  },
  'a cell is edited without a change': {
    cells: { a: 'x = 1' },
    calls: [block(READ_ALL, 'ctx.edit_cell("a", code="x = 1")')],
  },
  'a setup cell': {
    cells: { a: 'x = 1' },
    calls: [
      block('ctx.create_cell("import math", name="setup", before="a")', 'ctx.run_cell("setup")'),
      'print(math.floor(2.5))',
      block('ctx.create_cell("import os", name="setup")'),
    ],
  },
  'a widget is set': {
    cells: { a: 'import marimo as mo', b: 'slider = mo.ui.slider(0, 10)', c: 'print("at", slider.value)' },
    calls: [block('ctx.set_ui_value(ctx.globals["slider"], 7)'), 'print(slider.value)'],
  },
  'a state is set, and a cell that depends on it fails': {
    cells: {
      a: 'import marimo as mo\nget_x, set_x = mo.state(1)',
      b: 'import time\ntime.sleep(0.05)\nresult = 1 / get_x()',
    },
    calls: ['set_x(0)'],
  },
  'a state is set over two steps': {
    cells: {
      a: 'import marimo as mo\nget_x, set_x = mo.state(1)\nget_y, set_y = mo.state(1)',
      b: 'set_y(get_x())',
      c: 'z = 1 / get_y()',
    },
    calls: ['set_x(0)'],
  },
  'a state is set before the code fails': {
    cells: { a: 'import marimo as mo\nget_x, set_x = mo.state(1)', b: 'result = 1 / get_x()' },
    calls: ['set_x(0)\nraise RuntimeError("and more")'],
  },
  'code in every script': {
    calls: [block('ctx.run_cell(ctx.create_cell("text = \'žluť 中文 👩‍👩‍👧\'\\nprint(text)"))')],
  },
  'a cell of markdown': {
    cells: { a: 'import marimo as mo' },
    calls: [block('ctx.run_cell(ctx.create_cell("mo.md(\'# Title\')"))')],
  },
  'private names in two cells': {
    cells: { a: '_x = 1\nprint(_x)' },
    calls: [block('ctx.run_cell(ctx.create_cell("_x = 2\\nprint(_x)"))'), block('ctx.run_cell("a")')],
  },
};
