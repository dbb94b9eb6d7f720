import assert from 'node:assert/strict';
import test from 'node:test';
import { errorText, shownOutput } from '#src/agent/tools/output-text.ts';
import { cut } from '#src/agent/tools/tool.ts';

const ROWS = JSON.stringify([
  { _marimo_row_id: '0', city: 'Bern', people: 140 },
  { _marimo_row_id: '1', city: 'Lugano', people: null },
]).replace('null', 'NaN');
const TABLE = `<marimo-table data-total-rows="7" data-data='${JSON.stringify(ROWS).replaceAll("'", '&#39;')}'></marimo-table>`;

const SHOWN: Record<string, [mimetype: string, data: unknown, text: string]> = {
  'plain text as it is': ['text/plain', 'hello', 'hello'],
  'JSON as JSON': ['application/json', { a: [1, 2] }, '{"a":[1,2]}'],
  'HTML as its words': [
    'text/html',
    '<style>p {}</style><h1>Title</h1><p>One &amp; two</p><script>x()</script>',
    'Title\nOne & two',
  ],
  'rows of a table with bars': [
    'text/html',
    '<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>',
    'a | b |\n1 | 2 |',
  ],
  'tables of marimo as rows': ['text/html', TABLE, 'city | people\nBern | 140\nLugano |\n[2 of 7 rows]'],
  'a bundle as what says most': [
    'application/vnd.marimo+mimebundle',
    { 'text/html': '<b>x</b>', 'text/plain': 'x = 1' },
    'x = 1',
  ],
  'what cannot be seen as its size': [
    'application/pdf',
    'data:application/pdf;base64,AAAA',
    '[application/pdf, 3 bytes]',
  ],
};

for (const [what, [mimetype, data, text]] of Object.entries(SHOWN)) {
  test(`a model reads ${what}`, () => {
    assert.deepEqual(shownOutput({ mimetype, data }), { text, images: [] });
  });
}

test('a picture is shown as one', () => {
  const bytes = Buffer.from('abc');
  const data = { 'image/png': `data:image/png;base64,${bytes.toString('base64')}`, 'text/plain': 'Figure' };
  const shown = shownOutput({ mimetype: 'application/vnd.marimo+mimebundle', data });
  assert.deepEqual(shown, { text: '[image/png]', images: [{ mimetype: 'image/png', bytes }] });
});

test('a picture within HTML is seen, too', () => {
  const bytes = Buffer.from('abc');
  const html = `<p>Look:</p><img alt="x" src="data:image/png;base64,${bytes.toString('base64')}">`;
  assert.deepEqual(shownOutput({ mimetype: 'text/html', data: html }), {
    text: 'Look:\n[image/png]',
    images: [{ mimetype: 'image/png', bytes }],
  });
});

test('errors of a cell are one line each', () => {
  const errors = [{ type: 'exception', exception_type: 'ValueError', msg: 'no' }, { type: 'interruption' }];
  assert.equal(errorText(errors), 'ValueError: no\ninterruption');
});

test('a long text keeps its beginning and its end, with a note between them', () => {
  assert.equal(cut('abcdefghij', 10), 'abcdefghij');
  assert.equal(
    cut(`${'a'.repeat(70)}${'b'.repeat(100)}${'c'.repeat(30)}`, 100),
    `${'a'.repeat(70)}\n[… 100 characters left out …]\n${'c'.repeat(30)}`,
  );
});
