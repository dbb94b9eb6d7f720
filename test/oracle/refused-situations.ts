/** Code that only reads the notebook, or whose edit is rejected as a whole. All share one notebook and run in this order. */
import { block, blockWith } from '#test/support/code-block.ts';
import type { Cells, Situation } from './situation.ts';

const READ_ALL = '[cell.code for cell in ctx.cells]';

/** The cells of the shared notebook. */
export const REFUSED_CELLS: Cells = { a: 'import os\nx = 1', b: 'y = 2' };

/** The situations by name. */
export const REFUSED_SITUATIONS: Readonly<Record<string, Situation>> = {
  'code is edited without being read': {
    calls: [block('ctx.edit_cell("a", code="x = 2")')],
  },
  'a move without a place': { calls: [block('ctx.move_cell("a")')] },
  'a move with two places': {
    calls: [block('ctx.move_cell("a", before="b", after="b")')],
  },
  'invalid names': {
    calls: ['not a name', 'class', '_', 'ﬁrst'].map((name) => block(`ctx.edit_cell("a", name="${name}")`)),
  },
  'a name is defined twice': {
    calls: [block('ctx.create_cell("x = 2")', 'ctx.create_cell("y = 1")')],
  },
  'a name is defined twice by one block': {
    calls: [block('ctx.create_cell("x = 2")', 'ctx.create_cell("x = 1")')],
  },
  'a cycle': {
    calls: [block(READ_ALL, 'ctx.create_cell("q = x")', 'ctx.edit_cell("a", code="x = q")')],
  },
  'code that does not parse': {
    calls: [block('ctx.create_cell("y = 1")', 'ctx.create_cell("def :")')],
  },
  'a star import in a cell': {
    calls: [blockWith('', 'ctx.run_cell(ctx.create_cell("from math import *"))')],
  },
  'an exception in the block': {
    calls: [block('ctx.create_cell("y = 1")', 'raise ValueError("mine")')],
  },
  'a cell that is to be deleted is run': {
    calls: [block('ctx.delete_cell("a")', 'ctx.run_cell("a")')],
  },
  'a cell is deleted twice': {
    calls: [block('ctx.delete_cell("a")', 'ctx.delete_cell("a")')],
  },
  'a cell is moved and deleted': {
    calls: [block('ctx.move_cell("a", after="b")', 'ctx.delete_cell("a")')],
  },
  'a block that does nothing': { calls: [block('pass')] },
  'an operation without a block': {
    calls: ['import marimo._code_mode as cm\ncm.get_context().create_cell("x = 1")'],
  },
  'an operation after a block': {
    calls: [`${block('pass')}print(len(ctx.cells))\n_ = ctx.create_cell("x = 1")`],
  },
  'cells are read by index, id and name': {
    calls: [
      block(
        'print(ctx.cells[0].code, ctx.cells[-1].id, ctx.cells["b"].code, len(ctx.cells), "a" in ctx.cells, "q" in ctx.cells)',
        'print(ctx.cells.keys())',
      ),
    ],
  },
  'cells are searched': {
    calls: [block('print([c.id for c in ctx.cells.find("y")], [c.id for c in ctx.cells.grep("x =|y =")])')],
  },
  'a missing cell': {
    calls: ['ctx.cells["q"]', 'ctx.cells[5]', 'ctx.edit_cell("q", code="1")', 'ctx.run_cell("q")'].map(
      (line) => block(line),
    ),
  },
  'imports in two cells': { calls: [block('ctx.create_cell("import os")')] },
  'the notebook, after all of that': {
    calls: [block('print([(c.id, c.code, c.name, c.config.asdict()) for c in ctx.cells])'), 'print(x, y)'],
  },
};
