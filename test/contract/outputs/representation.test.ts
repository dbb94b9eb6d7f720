import assert from 'node:assert/strict';
import test from 'node:test';
import { errorsText } from '#src/contract/outputs/error-text.ts';
import { parsedOrText, parsePythonJson } from '#src/contract/outputs/python-json.ts';
import { preferred, representationFor } from '#src/contract/outputs/representation.ts';

const BUNDLE = 'application/vnd.marimo+mimebundle';
const AUDIENCES = ['terminal', 'model', 'page'] as const;

test('each audience gets the most informative member of a bundle', () => {
  const choices = (...mimetypes: string[]) =>
    AUDIENCES.map(
      (audience) =>
        preferred(
          mimetypes.map((mimetype) => ({ mimetype })),
          audience,
        )?.mimetype,
    );
  const [html, plain, vega] = ['text/html', 'text/plain', 'application/vnd.vegalite.v5+json'];
  assert.deepEqual(choices(plain, 'image/png'), ['image/png', 'image/png', 'image/png']);
  assert.deepEqual(choices(plain, html), [html, plain, html]);
  assert.deepEqual(choices(plain, 'image/svg+xml'), ['image/svg+xml', plain, 'image/svg+xml']);
  assert.deepEqual(choices(plain, vega), [vega, plain, plain]);
  assert.deepEqual(choices(vega), [vega, vega, vega]);
  assert.deepEqual(choices(), [undefined, undefined, undefined]);
});

test('a bundle may be a value, its text, invalid JSON, empty, or nested in a bundle', () => {
  const shown = (data: unknown) => representationFor({ mimetype: BUNDLE, data, text: 'repr' }, 'model');
  const member = { kind: 'data', mimetype: 'text/plain', data: 'x' };
  assert.deepEqual(shown({ 'text/plain': 'x', __metadata__: {} }), member);
  assert.deepEqual(shown('{"text/plain": "x"}'), member);
  assert.deepEqual(shown('x'), member);
  for (const data of [{}, null, 7, { [BUNDLE]: { 'text/plain': 'x' } }])
    assert.deepEqual(shown(data).kind, typeof data === 'number' ? 'data' : 'text');
});

test("the server's text replaces data when it contains more, but not when it only repeats or cuts the data", () => {
  const kinds = (mimetype: string, data: unknown, text: string) =>
    AUDIENCES.map((audience) => representationFor({ mimetype, data, text }, audience).kind);
  assert.deepEqual(kinds('application/json', '[1]', '(1,)'), ['text', 'text', 'text']);
  assert.deepEqual(kinds('application/json', '[1]', '[1]'), ['data', 'data', 'data']);
  assert.deepEqual(kinds('text/plain', 'long', 'lo'), ['data', 'data', 'data']);
  assert.deepEqual(kinds('text/html', '<b>', 'b'), ['data', 'text', 'data']);
});

test('a table with a first row that does not fit is shown from its data', () => {
  const table = { columns: [], rows: [], rowCount: 0, columnCount: 0 };
  const kind = (rowCount: number) =>
    representationFor({ mimetype: 'text/html', data: '', table: { ...table, rowCount } }, 'terminal').kind;
  assert.deepEqual([kind(0), kind(1)], ['table', 'data']);
});

test('errors are shown as lines, in every form in which they arrive', () => {
  const key = { type: 'exception', exception_type: 'KeyError', msg: "'x'" };
  assert.equal(errorsText([key]), "KeyError: 'x'");
  assert.equal(errorsText(JSON.stringify([key])), "KeyError: 'x'");
  assert.equal(errorsText([{ ...key, msg: 'KeyError: x\n' }]), 'KeyError: x');
  assert.equal(errorsText([{ ...key, msg: '' }]), 'KeyError');
  assert.equal(
    errorsText([{ type: 'multiple-defs', name: 5, cells: 'a' }]),
    'A name is also defined in other cells',
  );
  assert.equal(
    errorsText([null, 7, { type: 'cycle', edges_with_vars: [null, [1]] }]),
    ['error', 'error', 'the cells depend on each other in a cycle'].join('\n'),
  );
  assert.equal(errorsText('x'), 'The cell failed.');
  assert.equal(errorsText([key], 'in the words of the server\n'), 'in the words of the server');
});

test("Python's JSON is read with the numbers that JSON lacks, and any other text stays text", () => {
  assert.deepEqual(parsePythonJson('[NaN, -Infinity, "NaN, \\"Infinity"]'), [
    'NaN',
    '-Infinity',
    'NaN, "Infinity',
  ]);
  assert.equal(parsedOrText('[NaN'), '[NaN');
  assert.throws(() => parsePythonJson('{'), SyntaxError);
});
