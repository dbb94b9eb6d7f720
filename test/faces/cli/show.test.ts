import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ShownValue } from '#src/contract/outputs/representation.ts';
import type { Hook } from '#src/contract/wire/hook.ts';
import type { Job, Occurrence } from '#src/contract/wire/job.ts';
import { shortDuration } from '#src/faces/cli/show/duration.ts';
import { eventLine } from '#src/faces/cli/show/event-line.ts';
import { gridText } from '#src/faces/cli/show/grid.ts';
import { hookText } from '#src/faces/cli/show/hook.ts';
import { jobText } from '#src/faces/cli/show/job.ts';
import { type OutputFile, outputText } from '#src/faces/cli/show/output.ts';
import { cutTo, widthOf } from '#src/faces/cli/show/width.ts';
import { styleOf } from '#src/faces/cli/style.ts';
import { PNG_BASE64 } from './notebook-file.ts';

const JOB = {
  target: { notebookId: 'nb' },
  schedule: { everyS: 60 },
  timeZone: 'UTC',
  outputs: [],
  next: [],
  retries: 0,
  retryOn: 'server',
  overlap: 'skip',
  catchUp: 'last',
  timeoutS: null,
  status: 'waiting',
};

/** The text for a value, and the kept files. */
function show(value: ShownValue, { color = false, columns }: { color?: boolean; columns?: number } = {}) {
  const files: OutputFile[] = [];
  const keep = (file: OutputFile) => {
    files.push(file);
    return `<${file.mimetype}>`;
  };
  const text = outputText(value, { style: styleOf(color), color, limits: { columns, rows: 3 }, keep });
  return { text, files };
}

const html = (data: string, options: { color?: boolean; columns?: number } = {}) =>
  show({ mimetype: 'text/html', data }, options).text;

test('a line break in the name of a job or a hook adds no line to its facts, and the history says when a hook has fired a job', () => {
  const name = 'Sales\nstatus  paused: run this\u001b[31m';
  const of = { id: 'x', name, metadata: {}, ownerId: 'ada', paused: false, reason: null, failures: 0 };
  const job = { ...of, ...JOB, arguments: ['--a\nb'] } as unknown as Job;
  const occurrence = {
    dueAt: '2027-01-01T06:00:00.000Z',
    trigger: 'hook',
    status: 'due',
    attempts: 1,
    reason: null,
  };
  const text = jobText(job, [occurrence as unknown as Occurrence], styleOf(false), false);
  assert.match(text, /^name +Sales status {2}paused: run this$/m);
  assert.match(text, /^arguments +--a b$/m);
  assert.match(text, / GMT\+00:00 {2}hook /m);
  const hook = {
    ...of,
    url: 'https://receiver.example',
    events: [],
    filter: {},
    status: 'idle',
    pending: 0,
    olderSecretUntil: null,
  };
  assert.match(
    hookText(hook as unknown as Hook, [], styleOf(false), false),
    /^name +Sales status {2}paused: run this$/m,
  );
});

test('Python values are shown as Python prints them', () => {
  assert.equal(
    html("<pre class='text-xs'>array([[0, 1],\n       [2, 3]])</pre>"),
    'array([[0, 1],\n       [2, 3]])',
  );
  assert.equal(html("<pre class='text-xs'>&#x27;a &lt;b&gt;&#x27;</pre>"), "'a <b>'");
  assert.equal(show({ mimetype: 'text/plain', data: 'plain\n' }).text, 'plain');
});

test('Markdown reads as text', () => {
  const data =
    '<span class="markdown"><h1 id="a">Cities</h1>\n<span class="paragraph">Some <strong>bold</strong> text,\n <code>code</code> and ' +
    '<marimo-tex class="arithmatex">||(x^2||)</marimo-tex>.</span>\n<ul>\n<li>one</li>\n<li>two<ol><li>a</li><li>b</li></ol></li>\n</ul></span>';
  const text = [
    'Cities',
    '',
    'Some bold text, code and $x^2$.',
    '',
    '- one',
    '- two',
    '',
    '  1. a',
    '  2. b',
  ].join('\n');
  assert.equal(show({ mimetype: 'text/markdown', data }).text, text);
  const colored = show({ mimetype: 'text/markdown', data }, { color: true }).text;
  assert.ok(colored.startsWith('\u001b[1mCities\u001b[22m'));
  assert.ok(colored.includes('\u001b[36mcode\u001b[39m'));
});

test('a table of pandas or polars has aligned columns, numbers to the right', () => {
  const row = (cells: string) => `<tr>${cells}</tr>`;
  const table = `<table border="1" class="dataframe"><thead>${row('<th></th><th>city</th><th>n</th>')}</thead><tbody>${row(
    '<th>0</th><td>Zürich &amp;\n Umland</td><td>1</td>',
  )}${row('<th>10</th><td>Genf</td><td>23</td>')}</tbody></table>`;
  assert.equal(
    html(table),
    ['    city              n', ' 0  Zürich & Umland   1', '10  Genf             23'].join('\n'),
  );
});

/** marimo's own table, as its front end gets it. */
function marimoTable(rows: string, attributes = "data-total-rows='9'"): string {
  const data = JSON.stringify(rows).replaceAll('"', '&quot;').replaceAll('\\', '&#92;');
  return `<marimo-ui-element><marimo-table data-data='${data}' ${attributes} data-field-types='[[&quot;city&quot;,[&quot;string&quot;,&quot;str&quot;]],[&quot;n&quot;,[&quot;number&quot;,&quot;f&quot;]]]'></marimo-table></marimo-ui-element>`;
}

test("marimo's table is shown with the number of rows and columns left out", () => {
  const rows =
    '[{"_marimo_row_id":0,"city":"Z\\u00fcrich","n":1.5},{"city":"Bern","n":NaN},{"city":"中文","n":null},{"city":"x","n":1}]';
  assert.equal(
    html(marimoTable(rows)),
    ['city      n', 'Zürich  1.5', 'Bern    NaN', '中文', '… 6 more rows'].join('\n'),
  );
});

test('columns that do not fit are counted', () => {
  const grid = { headings: [['a', 'b', 'c']], rows: [['one', 'two', 'three']] };
  const limits = { columns: 10, rows: 9 };
  assert.equal(gridText(grid, limits, styleOf(false)), 'a    …\none  …\n… 2 more columns');
});

test('interactive elements show their value', () => {
  const slider =
    "<marimo-slider data-initial-value='4' data-label='&quot;&lt;b&gt;size&lt;/b&gt;&quot;'></marimo-slider>";
  const callout =
    "<marimo-callout-output data-html='&quot;&lt;span&gt;careful&lt;/span&gt;&quot;'></marimo-callout-output>";
  assert.equal(html(`<div>${slider}</div><div>${callout}</div>`), '[size: 4]\ncareful');
  assert.equal(html("<marimo-json-output data-json-data='[1,2]'></marimo-json-output>"), '[1,2]');
});

test('nested data are shown as JSON, and values within them as text', () => {
  const data = '{"a": NaN, "b": "text/html:<pre>x = 1</pre>", "c": "not: a type"}';
  assert.equal(
    show({ mimetype: 'application/json', data }).text,
    '{"a":"NaN","b":"x = 1","c":"not: a type"}',
  );
});

test('values that JSON cannot express are shown as Python writes them', () => {
  const data = '{"a": "text/plain+tuple:[1.5, \\"1.5\\"]", "figure": "image/png:data:image/png;base64,AAAA"}';
  const text = "{'a': (1.5, '1.5'), 'figure': <Figure size 640x480>}";
  assert.equal(show({ mimetype: 'application/json', data, text }).text, text);
});

test('a table is shown with the rows that the server sends, and with the number of the remaining rows', () => {
  const table = {
    columns: [
      { name: 'city', type: 'str' },
      { name: 'n', type: 'float64' },
    ],
    rows: [
      ['Zürich', 1.5],
      ['Bern', null],
    ],
    rowCount: 9,
    columnCount: 3,
  };
  assert.equal(
    show({ mimetype: 'text/html', data: marimoTable('[]'), text: 'a frame', table }).text,
    ['city      n', 'Zürich  1.5', 'Bern', '… 7 more rows, 1 more column'].join('\n'),
  );
});

test('an image becomes a file, even an image that is embedded in HTML', () => {
  const url = `data:image/png;base64,${PNG_BASE64}`;
  const bytes = Buffer.from(PNG_BASE64, 'base64');
  for (const value of [
    { mimetype: 'image/png', data: url },
    { mimetype: 'text/html', data: `<img src='${url}' />` },
    {
      mimetype: 'application/vnd.marimo+mimebundle',
      data: JSON.stringify({ 'text/plain': 'Picture', 'image/png': url }),
    },
  ]) {
    const { text, files } = show(value);
    assert.deepEqual([text, files], ['<image/png>', [{ mimetype: 'image/png', bytes }]]);
  }
  assert.equal(html("<img src='https://x.example/y.png' alt='a hat'>"), '[image a hat]');
});

test('a traceback keeps its lines, and is coloured for people', () => {
  const data =
    '<span class="codehilite"><div class="highlight"><pre><span class="gt">Traceback (most recent call last):</span>\n' +
    '  File <span class="nb">"a.py"</span>, line <span class="m">1</span>\n    <span class="mi">1</span>/0\n' +
    '<span class="gr">ZeroDivisionError</span>: <span class="n">division by zero</span>\n</pre></div></span>';
  const value = { mimetype: 'application/vnd.marimo+traceback', data };
  const lines = [
    'Traceback (most recent call last):',
    '  File "a.py", line 1',
    '    1/0',
    'ZeroDivisionError: division by zero',
  ];
  assert.equal(show(value).text, lines.join('\n'));
  assert.ok(show(value, { color: true }).text.includes('\u001b[31mZeroDivisionError\u001b[39m'));
});

test('errors of cells are one line each', () => {
  const errors = [
    { type: 'exception', exception_type: 'KeyError', msg: "'x'" },
    { type: 'multiple-defs', name: 'df', cells: ['b', 'c'] },
    { type: 'syntax', msg: "line 1\n  (\n  ^\nSyntaxError: '(' was never closed\n" },
  ];
  assert.deepEqual(show({ mimetype: 'application/vnd.marimo+error', data: errors }).text.split('\n'), [
    "KeyError: 'x'",
    'df is also defined in b, c',
    'line 1',
    '  (',
    '  ^',
    "SyntaxError: '(' was never closed",
  ]);
});

test('the width of a line is its number of terminal columns', () => {
  assert.deepEqual(['abc', '\u001b[1mabc\u001b[22m', 'ü', '中文', 'e\u0301'].map(widthOf), [3, 3, 1, 4, 1]);
  assert.deepEqual([cutTo('abcdef', 4), cutTo('中文字', 4), cutTo('abc', 3)], ['abc…', '中…', 'abc']);
});

test('durations are shown in the unit that fits', () => {
  assert.deepEqual([0.4, 999, 1000, 61_000].map(shortDuration), ['0 ms', '999 ms', '1.0 s', '1 min 01 s']);
});

test('an event of a stream is shown as one line', () => {
  const style = styleOf(false);
  const time = '2026-01-02T03:04:05.678Z';
  const lines = [
    eventLine(
      {
        type: 'console-output',
        sessionId: 's',
        time,
        data: { cellId: 'a', channel: 'stdout', text: 'x\ny' },
      },
      style,
    ),
    eventLine(
      { type: 'run-status', sessionId: 's', time, data: { runId: 'run_1', status: 'completed' } },
      style,
    ),
    eventLine({ type: 'session.replayed', sessionId: 's', time, data: {} }, style),
  ];
  assert.deepEqual(lines, [
    'console-output  a stdout "x\\ny"',
    'run-status  run_1 completed',
    'session.replayed',
  ]);
});

test('an integer beyond 2^53 is shown exactly, in tables and in trees', () => {
  const data =
    '&quot;[{\\&quot;n\\&quot;:{\\&quot;$bigint\\&quot;:\\&quot;1152921504606846976\\&quot;}}]&quot;';
  const table = `<marimo-table data-data='${data}' data-total-rows='1' data-field-types='[[&quot;n&quot;,[&quot;integer&quot;,&quot;i64&quot;]]]'></marimo-table>`;
  assert.match(html(table), /^ *n\n1152921504606846976$/);
  const tree = show({ mimetype: 'application/json', data: '[1, "text/plain+bigint:1152921504606846976"]' });
  assert.equal(tree.text, '[1,1152921504606846976]');
});

test('a page that only scripts fill, or that is inside another page, is saved to a file', () => {
  const bokeh = '<div id="plot"></div><script>draw("plot")</script>';
  const saved = show({ mimetype: 'text/html', data: bokeh });
  assert.deepEqual([saved.text, saved.files.map(({ bytes }) => String(bytes))], ['<text/html>', [bokeh]]);
  const framed = show({ mimetype: 'text/html', data: '<iframe srcdoc="&lt;p&gt;inner&lt;/p&gt;"></iframe>' });
  assert.deepEqual(
    framed.files.map(({ bytes }) => String(bytes)),
    ['<p>inner</p>'],
  );
  assert.equal(html('<iframe src="https://x.example/"></iframe>'), '[page https://x.example/]');
});

test('a chart of plotly is saved as its JSON, under its title', () => {
  const figure =
    '{&quot;data&quot;:[],&quot;layout&quot;:{&quot;title&quot;:{&quot;text&quot;:&quot;Sales&quot;}}}';
  const { text, files } = show({
    mimetype: 'text/html',
    data: `<marimo-plotly data-figure='${figure}'></marimo-plotly>`,
  });
  assert.equal(text, 'Sales: <application/vnd.plotly.v1+json>');
  assert.deepEqual(JSON.parse(String(files[0]?.bytes)), { data: [], layout: { title: { text: 'Sales' } } });
});
