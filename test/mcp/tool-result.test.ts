/** Results of tools that are too long for clients. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { toolResult } from '#src/mcp/tool-result.ts';

const MAX_DATA_CHARS = 256 * 1024;
const dataOf = (data: Readonly<Record<string, unknown>>) =>
  toolResult({ status: 'completed', text: 'done', data }, []).structuredContent as Readonly<
    Record<string, unknown>
  >;

test('the data of a result contain the first cells of a large notebook, and the JSON of all cells is never made', (t) => {
  const cells = Array.from({ length: 10_000 }, (_, at) => ({
    cellId: `cell-${at}`,
    code: '# "ä"\n'.repeat(100),
  }));
  let longest = 0;
  const stringify = JSON.stringify;
  t.mock.method(JSON, 'stringify', (value: unknown) => {
    const json = stringify(value);
    longest = Math.max(longest, json?.length ?? 0);
    return json;
  });
  const data = dataOf({ success: true, cells });
  t.mock.restoreAll();
  const kept = data.cells as typeof cells;
  assert.deepEqual(kept, cells.slice(0, kept.length));
  assert.ok(kept.length > 100 && kept.length < cells.length, `${kept.length} cells`);
  assert.deepEqual([data.success, data.isCut], [true, true]);
  assert.ok(longest <= MAX_DATA_CHARS + 1000, `${longest} characters were encoded at once`);
});

test('data within the limit are complete; from larger data first tables are left out, and then cells that are too long', () => {
  const table = { rows: Array.from({ length: 100_000 }, (_, at) => at) };
  const cell = { cellId: 'a', result: 'x' };
  const expected = { cells: [cell], isCut: true };
  const { untrusted, ...cut } = dataOf({ cells: [{ ...cell, table }] });
  assert.deepEqual(cut, expected);
  const long = dataOf({ cells: [{ cellId: 'a', code: 'x'.repeat(16 * 2 ** 20) }] });
  assert.deepEqual([long.cells, long.isCut], [[], true]);
  const numbers = Array.from({ length: 120_000 }, () => 1);
  assert.deepEqual(dataOf({ numbers }), { numbers, untrusted });
});
