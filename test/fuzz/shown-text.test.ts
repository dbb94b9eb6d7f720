// tier: whole, because it makes random or hostile input
/**
 * The command line shows hostile outputs and texts without an error and without control characters,
 * and its work ends.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import type { Run } from '#src/contract/wire/run.ts';
import { RunScreen } from '#src/faces/cli/run/run-screen.ts';
import { safeText, TerminalText } from '#src/faces/cli/safe-text.ts';
import { outputText, type ShowOptions } from '#src/faces/cli/show/output.ts';
import { cutTo } from '#src/faces/cli/show/width.ts';
import { styleOf } from '#src/faces/cli/style.ts';
import { table } from '#src/faces/cli/table.ts';
import { terminalOn } from '#src/faces/cli/terminal.ts';
import { assertLinear } from '#test/support/growth.ts';
import { SeededRandom } from '#test/support/random.ts';
import { STEERING } from '#test/support/steering.ts';
import { odd } from './odd-values.ts';

const CASES = 4_000;
/** The size of an output that is written to be slow. With work that grows with its square, one would take minutes. */
const SLOW_SIZE = 96_000;
const MIMETYPES = [
  ...['text/plain', 'text/html', 'text/markdown', 'text/csv', 'application/json', 'image/png', 'constructor'],
  ...[
    'application/vnd.marimo+mimebundle',
    'application/vnd.marimo+error',
    'application/vnd.marimo+traceback',
  ],
];
const PIECES = [
  ...[
    '\u001b[',
    '\u001b]',
    '\u001b]52;c;',
    '\u001bP',
    '\u001b_',
    '\u001b\\',
    '\u0007',
    '\u009b',
    '\u009d',
    '\u009c',
  ],
  ...[
    '31m',
    '2J',
    'H',
    '1;'.repeat(40),
    'm',
    '\r',
    '\n',
    '\r\n',
    '\t',
    '\b',
    '\u0000',
    '\u202e',
    '\u2067',
    '\ud83d',
  ],
  ...[
    '<constructor>',
    '<pre>',
    '<span class="constructor">',
    '<table>',
    '<tr><td>',
    '<th>',
    '<ol><li>',
    '</ol>',
  ],
  ...[
    '<marimo-table data-data="',
    '<marimo-x data-initial-value="1" data-label="&quot;<<<">',
    '"',
    "'",
    '>',
    '<',
    '&',
  ],
  ...[
    'data:image/png,%',
    'data:image/png;base64,',
    '<img src="data:,%zz">',
    '{"a":',
    '[',
    'NaN',
    'text/html:',
    '\\',
  ],
  ...['word', 'Zürich', '数字', '😀', ' '.repeat(9)],
];
function hostileText(random: SeededRandom): string {
  return Array.from({ length: random.below(30) }, () =>
    random.is(0.2) ? random.bytes(random.below(12)).toString('latin1') : random.pick(PIECES),
  ).join('');
}

function hostileData(random: SeededRandom): unknown {
  if (random.is(0.7)) return hostileText(random);
  const entries = Array.from({ length: 3 }, () => [
    random.pick([...MIMETYPES, 'type', 'msg', 'cells']),
    random.is(0.5) ? hostileText(random) : odd(random),
  ]);
  return random.is(0.5) ? Object.fromEntries(entries) : [Object.fromEntries(entries), odd(random)];
}

function optionsFor(columns: number | undefined, color: boolean): ShowOptions {
  return {
    style: styleOf(color),
    color,
    limits: { columns, rows: 20 },
    keep: ({ mimetype }) => `[${mimetype}]`,
  };
}

test('no output makes the show code fail, or gets more than text and colours to a terminal', () => {
  const random = new SeededRandom(1);
  for (let i = 0; i < CASES; i++) {
    let sent = '';
    const take = (text: string) => {
      sent += text;
    };
    const color = random.is(0.5);
    const columns = random.pick([undefined, 0, 1, 2, 80]);
    const screens = { out: true, err: true };
    const terminal = terminalOn({ out: take, err: take, color, live: color, columns, screens });
    const value = { mimetype: random.pick(MIMETYPES), data: hostileData(random) };
    terminal.out(outputText(value, optionsFor(columns, color)));
    terminal.err(hostileText(random));
    terminal.out(table(['one'], [[hostileText(random)]], color));
    assert.doesNotMatch(sent, STEERING, JSON.stringify(value));
    cutTo(hostileText(random), random.below(5) - 2);
  }
});

test('text printed in pieces is as safe as text printed at once', () => {
  const random = new SeededRandom(2);
  for (let i = 0; i < CASES; i++) {
    const printed = new TerminalText('', { colors: true });
    const text = hostileText(random);
    let shown = '';
    for (let at = 0; at < text.length; ) {
      const end = at + 1 + random.below(5);
      shown += printed.take(text.slice(at, end));
      at = end;
    }
    assert.doesNotMatch(shown, STEERING, JSON.stringify(text));
    assert.equal(safeText(shown, { colors: true }), shown);
  }
});

test('a whole run of hostile cells is shown to its end', async () => {
  const random = new SeededRandom(3);
  for (let i = 0; i < CASES / 20; i++) {
    let sent = '';
    const take = (text: string) => {
      sent += text;
    };
    const terminal = terminalOn({
      out: take,
      err: take,
      color: true,
      live: true,
      screens: { out: true, err: true },
    });
    const screen = new RunScreen(terminal, styleOf(true), {
      show: () => optionsFor(0, true),
      asset: async () => ({ bytes: Buffer.from(hostileText(random)) }),
      liveAsset: async () => ({ bytes: Buffer.from(hostileText(random)) }),
    });
    const [cellId, runId] = [hostileText(random), 'run_1'];
    const cell = { cellId, name: hostileText(random), code: hostileText(random), config: {}, version: 1 };
    const output = { channel: 'output', mimetype: random.pick(MIMETYPES), data: hostileData(random) };
    const events: unknown[] = [
      { type: 'cells-registered', sessionId: 's', data: { cells: [cell], order: [cellId] } },
      { type: 'cell-op', sessionId: 's', runId, data: { cellId, status: 'running' } },
      ...Array.from({ length: 4 }, () => ({
        type: 'console-output',
        sessionId: 's',
        runId,
        data: { cellId, channel: random.pick(['stdout', 'stderr']), text: hostileText(random) },
      })),
      { type: 'cell-op', sessionId: 's', runId, data: { cellId, output, status: 'idle' } },
    ];
    for (const event of events) await screen.take(event as NotebookStreamEvent, runId);
    const message = hostileText(random);
    const run: Run = {
      id: runId,
      kind: 'notebook',
      sessionId: 's',
      status: 'failed',
      input: { type: 'all', cacheMode: 'default' },
      output: { stored: true, parts: [{ type: 'warning', code: 'w', message }] },
      error: { code: 'x', message },
      createdAt: '',
      startedAt: null,
      finishedAt: null,
    };
    await screen.finish(run);
    assert.doesNotMatch(sent.replaceAll('\r\u001b[2K', ''), STEERING);
    assert.equal(screen.activity, '1/1 cells');
  }
});

test('outputs that are written to be slow are shown in time proportional to their size', () => {
  const nested = (begin: string, end: string, depth: number) => begin.repeat(depth) + end.repeat(depth);
  const html = (text: (size: number) => string) => (size: number) => ({
    mimetype: 'text/html',
    data: text(size),
  });
  const label = (size: number) => `&quot;${'<'.repeat(size)}&quot;`;
  const values: readonly ((size: number) => { mimetype: string; data: string })[] = [
    html((size) => `<pre>${' '.repeat(size)}x</pre>`),
    html((size) => `<pre>${'\n'.repeat(size)}x</pre>`),
    html((size) => '<b>x</b> '.repeat(size / 10)),
    html((size) => `<ol>${'<li>x'.repeat(size / 10)}</ol>`),
    html((size) => nested('<table><tr><td>', '</td></tr></table>', size / 1600)),
    html((size) => nested('<div>', '</div>', size / 10)),
    html((size) => `<marimo-x data-initial-value="1" data-label="${label(size)}"></marimo-x>`),
    html((size) => `<table>${'<tr><th>x'.repeat(size / 10)}</table>`),
    (size) => ({ mimetype: 'application/json', data: nested('[', ']', size) }),
    (size) => ({ mimetype: 'application/json', data: `"${'\\"'.repeat(size)}` }),
    (size) => ({ mimetype: 'image/png', data: `data:${'a'.repeat(size)}` }),
    () => ({ mimetype: 'application/vnd.marimo+mimebundle', data: nested('{"text/html":', '}', 9) }),
  ];
  for (const value of values) {
    const what = JSON.stringify(value(1600).data.slice(0, 60));
    assertLinear(what, SLOW_SIZE, (size) => outputText(value(size), optionsFor(80, true)));
  }
  for (const begin of ['\u001b[', '\u001b]', '\u001b]0', '\u009b1;', '\u001b[1;', '\r', '\u001b']) {
    const what = JSON.stringify(begin);
    assertLinear(what, SLOW_SIZE, (size) => safeText(begin.repeat(size), { colors: true }));
    assertLinear(what, SLOW_SIZE, (size) => safeText(begin + '1;'.repeat(size), { colors: true }));
  }
});

test('an output that is not a valid data URL is kept unchanged', () => {
  const kept: string[] = [];
  const options: ShowOptions = {
    ...optionsFor(80, false),
    keep: ({ mimetype, bytes }) => {
      kept.push(`${mimetype} ${Buffer.from(bytes).toString('latin1')}`);
      return '';
    },
  };
  outputText({ mimetype: 'image/png', data: 'data:image/png,%' }, options);
  outputText({ mimetype: 'image/png', data: 'data:image/png,a%20b%zz%FF' }, options);
  outputText({ mimetype: 'image/png', data: 'data:image/png;base64,aGk=' }, options);
  outputText({ mimetype: 'text/html', data: '<img src="data:image/gif;x=y,%">' }, options);
  assert.deepEqual(kept, ['image/png %', 'image/png a b%zz\u00ff', 'image/png hi', 'image/gif %']);
});
