import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atOnce } from '#src/base/async/slices.ts';
import { MAX_MEMBERS } from '#src/base/json/json-scan.ts';
import { parseBoundedJson, parseLargeBoundedJson } from '#src/confined/processes/bounded-json.ts';
import { ShapeError } from '#src/confined/processes/json-shape.ts';
import {
  decodeMessage,
  MAX_WIDGETS_CHARS,
  mayTakeLong,
} from '#src/confined/processes/kernel/message-decoders.ts';

const CELL_OP = {
  op: 'cell-op',
  cell_id: 'a',
  output: null,
  console: null,
  status: null,
  stale_inputs: null,
  run_id: null,
  execution_id: null,
  timestamp: 1.5,
};

test('a cell-op keeps its members and marks the others as unchanged', () => {
  const output = { channel: 'output', mimetype: 'text/html', data: '<b>', timestamp: 1 };
  assert.deepEqual(decodeMessage({ ...CELL_OP, output, status: 'running', serialization: 'x' }), {
    op: 'cell-op',
    cellId: 'a',
    output,
    console: null,
    status: 'running',
    staleInputs: null,
    runId: null,
    executionId: null,
    timestamp: 1.5,
  });
});

test('a single console entry and a list of entries both become lists, and an empty list stays empty', () => {
  const entry = { channel: 'stdout', mimetype: 'text/plain', data: 'x', timestamp: 1 };
  const consoles = [entry, [entry, entry], []].map((console) => {
    const message = decodeMessage({ ...CELL_OP, console });
    return message.op === 'cell-op' ? message.console : null;
  });
  assert.deepEqual(consoles, [[entry], [entry, entry], []]);
});

test('a message has a hundred console entries at most, and a message with several entries is the last of its group', () => {
  const entry = { channel: 'stdout', mimetype: 'text/plain', data: 'x', timestamp: 1 };
  const withEntries = (count: number) => ({
    ...CELL_OP,
    console: Array.from({ length: count }, () => entry),
  });
  assert.equal(decodeMessage(withEntries(100)).op, 'cell-op');
  assert.throws(() => decodeMessage(withEntries(101)), ShapeError);
  const taking = [{ ...CELL_OP, console: entry }, withEntries(0), withEntries(1), withEntries(2)].map(
    mayTakeLong,
  );
  assert.deepEqual(taking, [false, false, false, true]);
});

test('of very many completions or packages, only the first ones are read', () => {
  const options = Array.from({ length: 20_000 }, (_, n) => ({
    name: `n${n}`,
    type: 't',
    completion_info: null,
  }));
  const completions = decodeMessage({
    op: 'completion-result',
    completion_id: 'c',
    prefix_length: 1,
    options,
  });
  assert.equal(completions.op === 'completion-result' && completions.options.length, 10_000);
  const packages = options.map(({ name }) => name);
  const missing = decodeMessage({ op: 'missing-package-alert', packages });
  assert.equal(missing.op === 'missing-package-alert' && missing.packages.length, 1000);
});

test('the verdicts of all cells survive cell names that are special in JavaScript', () => {
  const cells = JSON.parse('{"__proto__":["success",false,[]],"b":[null,true,[{"type":"cycle"}]]}');
  const message = decodeMessage({ op: 'bridge-done', seq: 3, type: 'T', error: null, cells });
  assert.deepEqual(message, {
    op: 'bridge-done',
    seq: 3,

    type: 'T',
    error: null,
    interrupted: false,
    cells: new Map([
      ['__proto__', { status: 'success', stale: false, errors: [] }],
      ['b', { status: null, stale: true, errors: [{ type: 'cycle' }] }],
    ]),
  });
});

test('the answer to a check of new code is decoded with the errors of each cell', () => {
  const errors = { a: [], b: [{ type: 'multiple-defs', name: 'x', cells: ['a'] }] };
  const message = decodeMessage({ op: 'bridge-judged', errors });
  assert.deepEqual(message, { op: 'bridge-judged', errors: new Map(Object.entries(errors)) });
  assert.throws(() => decodeMessage({ op: 'bridge-judged', errors: { a: 'cycle' } }), ShapeError);
});

test("a document transaction has its cells' configuration in the server's names", () => {
  const changes = [
    {
      type: 'create-cell',
      cellId: 'n',
      code: '1',
      name: '',
      config: { hide_code: true, disabled: false, column: null },
      before: null,
      after: 'a',
    },
    { type: 'set-config', cellId: 'n', hideCode: false, disabled: true, column: 2, expandOutput: true },
    { type: 'reorder-cells', cellIds: ['n'] },
  ];
  const message = { op: 'notebook-document-transaction', transaction: { source: 'code-mode', changes } };
  assert.deepEqual(decodeMessage(message), {
    op: 'notebook-document-transaction',
    source: 'code-mode',
    changes: [
      {
        type: 'create-cell',
        cellId: 'n',
        code: '1',
        name: '',
        config: { hideCode: true, disabled: false, column: null, expandOutput: false },
        before: null,
        after: 'a',
      },
      {
        type: 'set-config',
        cellId: 'n',
        config: { hideCode: false, disabled: true, column: 2, expandOutput: true },
      },
      { type: 'reorder-cells', cellIds: ['n'] },
    ],
  });
});

test('a notification without a decoder is passed on with its name and its members', () => {
  const fields = { op: 'datasets', tables: [] };
  assert.deepEqual(decodeMessage(fields), { op: 'other', name: 'datasets', fields });
});

test("the names and types of a table's columns have at most half a million characters together, and its rows as many", () => {
  const limit = 512 * 1024;
  const output = { channel: 'output', mimetype: 'text/html', data: '', timestamp: 1 };
  const decode = (names: readonly string[], rows: readonly unknown[][]) => {
    const columns = names.map((name) => ({ name, type: 'int' }));
    const table = { columns, rows, rowCount: 1, columnCount: names.length };
    const message = decodeMessage({ ...CELL_OP, output: { ...output, table } });
    return message.op === 'cell-op' ? message.output?.table : undefined;
  };
  const [name, cell] = ['x'.repeat(limit - 7), 'x'.repeat(limit - 6)];
  assert.deepEqual(decode([name, 'y'], [])?.columns.length, 2);
  assert.throws(() => decode([name, 'yz'], []), ShapeError);
  assert.deepEqual(decode([], [[cell]])?.rows, [[cell]]);
  assert.throws(() => decode([], [[`${cell}x`]]), ShapeError);
  const many = Array.from({ length: 300 }, () => 'x'.repeat(3000));
  assert.throws(() => decode(many, []), ShapeError);
  assert.equal(
    decode([...many.slice(0, 170), ...Array.from({ length: 60 }, () => '')], [])?.columns.length,
    200,
  );
});

test('a MIME type is cut to 255 characters', () => {
  const kept = [255, 256].map((length) => {
    const output = { channel: 'output', mimetype: 'x'.repeat(length), data: '', timestamp: 1 };
    const message = decodeMessage({ ...CELL_OP, output });
    return message.op === 'cell-op' ? message.output?.mimetype.length : undefined;
  });
  assert.deepEqual(kept, [255, 255]);
});

test('long reasons of failures and of missing outputs are cut off', () => {
  const errorOf = (error: string) => {
    const message = decodeMessage({ op: 'bridge-done', seq: 1, type: 'T', error, cells: {} });
    return message.op === 'bridge-done' ? message.error : undefined;
  };
  const [error, reason] = ['x'.repeat(20_000), 'x'.repeat(500)];
  assert.deepEqual([errorOf(error), errorOf(`${error}x`)], [error, `${error}…`]);
  assert.deepEqual(
    decodeMessage({ op: 'bridge-warning', cell_id: 'a', what: reason, reason: `${reason}x` }),
    {
      op: 'bridge-warning',
      cellId: 'a',
      what: reason,
      reason: `${reason}…`,
    },
  );
});

test('the state of widgets is taken up to its limit', () => {
  const widgets = 'x'.repeat(MAX_WIDGETS_CHARS);
  assert.deepEqual(decodeMessage({ op: 'bridge-widgets', widgets }), { op: 'bridge-widgets', widgets });
  assert.throws(() => decodeMessage({ op: 'bridge-widgets', widgets: `${widgets}x` }), ShapeError);
});

test('a known message of another shape is refused', () => {
  const output = { channel: 'output', mimetype: 'text/html', data: '', timestamp: 1 };
  const forged: unknown[] = [
    null,
    [],
    'cell-op',
    {},
    { op: 1 },
    { op: 'cell-op' },
    { ...CELL_OP, cell_id: 7 },
    { ...CELL_OP, status: 'dancing' },
    { ...CELL_OP, output: { ...output, data: 7 } },
    { ...CELL_OP, output: { ...output, channel: 'other' } },
    { ...CELL_OP, output: { ...output, data: [{ msg: 'no type' }] } },
    { ...CELL_OP, output: { ...output, data: [{ type: 'exception', msg: 7 }] } },
    { ...CELL_OP, console: 'text' },
    { op: 'bridge-done', seq: '1', type: 'T', error: null, cells: {} },
    { op: 'bridge-done', seq: 1, type: 'T', error: null, cells: [] },
    { op: 'bridge-done', seq: 1, type: 'T', error: null, cells: { a: ['success', false] } },
    { op: 'bridge-done', seq: 1, type: 'T', error: null, cells: { a: ['fine', false, []] } },
    { op: 'notebook-document-transaction', transaction: { source: 'x', changes: [{ type: 'explode' }] } },
    {
      op: 'notebook-document-transaction',
      transaction: { source: 'x', changes: [{ type: 'set-code', cellId: 'a' }] },
    },
    { op: 'variables', variables: [{ name: 'x', declared_by: 'a', used_by: [] }] },
  ];
  for (const message of forged)
    assert.throws(() => decodeMessage(message), ShapeError, JSON.stringify(message));
});

test('JSON with any content of its strings is parsed', () => {
  const far = (text: string) => `${'x'.repeat(70)}${text}`;
  const long = ['"', '\\', '\\"', '"\\', '\\\\"[['].flatMap((text) => [
    far(text),
    [far(text), '[', far(`${text}]`)],
  ]);
  // An escape that crosses the end of the part that is searched first.
  for (let length = 58; length < 68; length++) long.push([`${'x'.repeat(length)}\\"[["`, ',']);
  for (const value of [...long, '[[[', '\\', '"', '\\"]}', '{'.repeat(500), { 'a"[': ['\\\\', ',,,'] }]) {
    assert.deepEqual(parseBoundedJson(Buffer.from(JSON.stringify(value))), value);
  }
});

const objectOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 1]));

test('lists in a message have limits, and variables beyond their limit are left out', () => {
  const change = { type: 'delete-cell', cellId: 'a' };
  const transaction = (changes: number) => ({
    op: 'notebook-document-transaction',
    transaction: { source: 'kernel', changes: Array(changes).fill(change) },
  });
  decodeMessage(transaction(30_000));
  assert.throws(
    () => decodeMessage(transaction(30_001)),
    new ShapeError('changes has more than 30000 items'),
  );
  const variable = { name: 'x', declared_by: ['a'], used_by: ['b', 'c', 'd'] };
  const variables = (count: number) => {
    const message = decodeMessage({ op: 'variables', variables: Array(count).fill(variable) });
    return message.op === 'variables' ? message.variables.length : undefined;
  };
  assert.equal(variables(12_000), 12_000);
  assert.equal(variables(12_001), 12_000);
});

test('JSON that is nested too deeply, has too many values or is invalid is refused without being quoted', () => {
  const refused: readonly (readonly [string, string])[] = [
    [`${'['.repeat(65)}${']'.repeat(65)}`, 'a frame that is nested too deeply'],
    [`{"a":${'{"a":'.repeat(100)}1${'}'.repeat(101)}`, 'a frame that is nested too deeply'],
    [`[${'[],'.repeat(600_000)}1]`, 'a frame of too many values'],
    [JSON.stringify(objectOf(MAX_MEMBERS + 1)), 'a frame with an object of too many members'],
    ['secret', 'a frame that is not JSON'],
    ['"secret', 'a frame that is not JSON'],
    ['"secret\\', 'a frame that is not JSON'],
    ['', 'a frame that is not JSON'],
  ];
  for (const [text, message] of refused) {
    assert.throws(() => parseBoundedJson(Buffer.from(text)), new ShapeError(message));
  }
  const widest = { a: objectOf(MAX_MEMBERS), b: objectOf(MAX_MEMBERS) };
  assert.deepEqual(parseBoundedJson(Buffer.from(JSON.stringify(widest))), widest);
  const large = Buffer.from(JSON.stringify({ a: objectOf(MAX_MEMBERS + 1) }));
  assert.throws(() => atOnce(parseLargeBoundedJson(large)), /too many members/);
  assert.equal(typeof parseBoundedJson(Buffer.from(`${'['.repeat(64)}${']'.repeat(64)}`)), 'object');
});
