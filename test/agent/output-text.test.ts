import assert from 'node:assert/strict';
import test from 'node:test';
import { MAX_HTML_CHARS, shownOutput } from '#src/agent/tools/output-text.ts';
import { cut } from '#src/agent/tools/tool.ts';
import { MAX_HTML_DEPTH } from '#src/contract/outputs/html-text.ts';
import { assertLinear } from '#test/support/growth.ts';

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
    'Title\n\nOne & two',
  ],
  'rows of a table with bars': [
    'text/html',
    '<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>',
    'a | b\n1 | 2',
  ],
  'tables of marimo as rows': ['text/html', TABLE, 'city | people\nBern | 140\nLugano | NaN\n[2 of 7 rows]'],
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

test('a picture is sent as a picture', () => {
  const bytes = Buffer.from('abc');
  const data = { 'image/png': `data:image/png;base64,${bytes.toString('base64')}`, 'text/plain': 'Figure' };
  const shown = shownOutput({ mimetype: 'application/vnd.marimo+mimebundle', data });
  assert.deepEqual(shown, { text: '[image/png]', images: [{ mimetype: 'image/png', bytes }] });
});

test('a picture within HTML is sent as well', () => {
  const bytes = Buffer.from('abc');
  const html = `<p>Look:</p><img alt="x" src="data:image/png;base64,${bytes.toString('base64')}">`;
  assert.deepEqual(shownOutput({ mimetype: 'text/html', data: html }), {
    text: 'Look:\n\n[image/png]',
    images: [{ mimetype: 'image/png', bytes }],
  });
});

const html = (data: string) => shownOutput({ mimetype: 'text/html', data });

test('the time to read HTML, tables and unfinished tags grows with their length, not with the square of it', () => {
  const table = (rows: string) => `<marimo-table data-data='${rows}'></marimo-table>`;
  const wide = (columns: number) => `{${Array.from({ length: columns }, (_, i) => `"c${i}":1`).join(',')}}`;
  const texts: Readonly<Record<string, (size: number) => string>> = {
    paragraphs: (size) => '<p>some words here'.repeat(size / 2.5),
    rows: (size) => '<tr><td>a</td><td>b</td></tr>'.repeat(size / 2.5),
    'unfinished tags': (size) => '<img '.repeat(size),
    'tags that end others': (size) => `${'<b>'.repeat(size / 3)}${'</x>'.repeat(size / 3)}`,
    'a table of spaces': (size) => table(`[${' '.repeat(2 * size)}x]`),
    'a table of quotes': (size) => table(`["${'\\"'.repeat(size)}`),
    'a wide table': (size) => table(`[${wide(size / 10)}${',{}'.repeat(size / 3)}]`),
  };
  for (const [what, text] of Object.entries(texts)) assertLinear(what, 100_000, (size) => html(text(size)));
});

test('the beginning of long HTML is read, and the text gives the full length', () => {
  const words = 'x'.repeat(MAX_HTML_CHARS - 7);
  assert.equal(html(`<p>${words}</p>`).text, words);
  assert.equal(
    html(`<p>${words}</p>\n`).text,
    `${words}\n[only the first ${MAX_HTML_CHARS} of ${MAX_HTML_CHARS + 1} characters of HTML were read]`,
  );
});

test('pictures do not count towards the limit of HTML that is read', () => {
  const bytes = Buffer.alloc(MAX_HTML_CHARS, 1);
  const picture = `<img src="data:image/png;base64,${bytes.toString('base64')}">`;
  assert.deepEqual(html(`${picture}<p>below</p>`), {
    text: '[image/png]\n\nbelow',
    images: [{ mimetype: 'image/png', bytes }],
  });
});

test('the beginning of deeply nested HTML is read', () => {
  const nested = (depth: number) => html(`<p>a</p>${'<b>'.repeat(depth)}b`).text;
  assert.equal(nested(MAX_HTML_DEPTH), 'a\n\nb');
  assert.equal(
    nested(MAX_HTML_DEPTH + 1),
    `a\n[the rest was not read: its elements are nested more than ${MAX_HTML_DEPTH} deep]`,
  );
});

test('in a table, NaN and the infinities are shown differently from missing values', () => {
  const rows = JSON.stringify([{ a: 'x, NaN, "y"', b: null, c: null, d: null }]);
  const table = rows.replace('null', 'NaN').replace('null', '-Infinity').replaceAll('"', '&quot;');
  assert.equal(
    html(`<marimo-table data-data="${table}"></marimo-table>`).text,
    'a | b | c | d\nx, NaN, "y" | NaN | -Infinity |',
  );
});

test('errors of a cell are one line each', () => {
  const data = [{ type: 'exception', exception_type: 'ValueError', msg: 'no' }, { type: 'interruption' }];
  const mimetype = 'application/vnd.marimo+error';
  assert.equal(shownOutput({ mimetype, data }).text, 'ValueError: no\nthis was interrupted');
});

test("a model reads the server's text and rows of a value instead of its HTML, unless the HTML has pictures", () => {
  const value = { mimetype: 'text/html', data: '<b>x</b>', text: 'Model(x=1)' };
  assert.equal(shownOutput(value).text, 'Model(x=1)');
  const table = {
    columns: [
      { name: 'city', type: 'str' },
      { name: 'n', type: 'int64' },
    ],
    rows: [
      ['Bern', 1],
      ['Genf', null],
    ],
    rowCount: 7,
    columnCount: 2,
  };
  assert.equal(shownOutput({ ...value, table }).text, 'city | n\nBern | 1\nGenf |\n[2 of 7 rows]');
  const picture = '<img src="data:image/png;base64,YWJj">';
  assert.equal(shownOutput({ ...value, data: picture }).images.length, 1);
});

test('a long text keeps its beginning and its end, with a note between them', () => {
  assert.equal(cut('abcdefghij', 10), 'abcdefghij');
  assert.equal(
    cut(`${'a'.repeat(70)}${'b'.repeat(100)}${'c'.repeat(30)}`, 100),
    `${'a'.repeat(70)}\n[… 100 characters left out …]\n${'c'.repeat(30)}`,
  );
});
