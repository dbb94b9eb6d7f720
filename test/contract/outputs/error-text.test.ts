import assert from 'node:assert/strict';
import test from 'node:test';
import { errorMessage } from '#src/contract/outputs/error-text.ts';

test('an error has a text, even if marimo gives it no message', () => {
  const rows = [
    [{ type: 'exception', exception_type: 'ValueError', msg: 'boom' }, 'boom'],
    [{ type: 'multiple-defs', name: 'x', cells: ['a', 'b'] }, 'x is also defined in a, b'],
    [{ type: 'cycle', edges_with_vars: [] }, 'the cells depend on each other in a cycle'],
    [{ type: 'setup-refs', edges_with_vars: [] }, 'the setup cell depends on other cells'],
    [{ type: 'interruption' }, 'this was interrupted'],
    [{ type: 'something-new' }, 'something-new'],
  ] as const;
  for (const [error, text] of rows) assert.equal(errorMessage(error), text);
});
