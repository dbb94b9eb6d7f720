// tier: whole, because it draws plots in a confined browser; static-page.test.ts and widgets.test.ts stay in the gate
/** Pictures of charts in reports, which marimo's front end draws in a confined browser. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { drawCells, MAX_PICTURES } from '#src/faces/cli/run/cell-pictures.ts';
import { findBrowser } from '#src/faces/cli/run/confined-browser.ts';
import { withoutBrowser } from '#test/support/browser.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const canShutIn =
  spawnSync('unshare', ['--user', '--map-root-user', '--mount', '--net', 'true']).status === 0;
const skip = withoutBrowser || (canShutIn ? false : 'this machine cannot confine a browser');

const browser = findBrowser(process.env.PATH) ?? '';
const never = new AbortController().signal;

/** Returns the width and the height of a PNG. */
function sizeOf(png: Uint8Array): readonly number[] {
  const bytes = Buffer.from(png);
  assert.equal(bytes.subarray(1, 4).toString(), 'PNG');
  return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
}

const DRAW = "document.getElementById('output-a').innerHTML = '<svg width=300 height=200></svg>'";

/** Starts a server whose every path is a script. Returns its address, and the paths that were asked for. */
async function startScripts(
  t: TestContext,
  answer = (response: http.ServerResponse): unknown => response.end(DRAW),
): Promise<{ baseUrl: string; asked: string[] }> {
  const asked: string[] = [];
  const server = http.createServer(({ url = '' }, response) => {
    asked.push(url);
    response.setHeader('content-type', 'text/javascript');
    answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

test('a report has a picture of a chart in place of its text, and the text describes the picture', {
  skip,
}, async (t) => {
  const shell = new Shell(t, await startServer(t));
  const cells = {
    imports: 'import marimo as mo\nimport altair as alt\nimport pandas as pd',
    chart: 'alt.Chart(pd.DataFrame({"x": [1, 2]})).mark_point().encode(x="x")',
    beside:
      'mo.hstack([mo.md("left"), mo.ui.altair_chart(alt.Chart(pd.DataFrame({"y": [3]})).mark_bar().encode(y="y"))])',
  };
  writeFileSync(join(shell.cwd, 'report.py'), marimoFile(cells));
  const env = { PATH: process.env.PATH ?? '' };
  const ran = await shell.troupe(['run', 'report.py', '-o', 'report.html', '-o', 'report.pdf'], { env });
  assert.equal(ran.exitCode, 0, ran.err);
  assert.doesNotMatch(ran.err, /has only the text/);
  const page = readFileSync(join(shell.cwd, 'report.html'), 'utf8');
  const pictures = [...page.matchAll(/<img alt="([^"]*)" src="data:image\/png;base64,([^"]+)">/g)];
  assert.equal(pictures.length, 2, page.slice(0, 2_000));
  for (const [, alt = '', data = ''] of pictures) {
    assert.notEqual(alt, '');
    const [width = 0, height = 0] = sizeOf(Buffer.from(data, 'base64'));
    assert.ok(width > 200 && height > 50, `${width} × ${height}`);
  }
  assert.doesNotMatch(page, /<script/);
});

test('without a browser a report has the text of charts, and a warning gives the reason', async (t) => {
  const shell = new Shell(t, await startServer(t));
  const chart =
    'import altair as alt\nimport pandas as pd\nalt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x")';
  writeFileSync(join(shell.cwd, 'report.py'), marimoFile({ chart }));
  const ran = await shell.troupe(['run', 'report.py', '-o', 'report.html'], { env: { PATH: '/nowhere' } });
  assert.equal(ran.exitCode, 0, ran.err);
  assert.match(ran.err, /only the text of chart: a chart of altair: .*which is not installed here/);
});

test('the page for pictures gets only files of the front end from the server and the given scripts', {
  skip,
}, async (t) => {
  const { baseUrl, asked } = await startScripts(t);
  const html = `<!doctype html><div id="output-a"></div><div id="output-b">text</div><div id="output-c"></div>
    <script src="https://127.0.0.1:1/given.js"></script>
    <script>
      for (const path of ['/api/v3/me', '/n/x/', '/marimo/1/../../api/v3/me', '/marimo/1/x%2f..%2f..%2fapi', 'http://127.0.0.2:80/', 'https://127.0.0.1:1/given.js?'])
        fetch(path).then(() => Object.assign(document.getElementById('output-b'), { innerHTML: '<svg width=300 height=200></svg>' }), () => {});
      document.body.append(Object.assign(new Image(), { src: '/api/v3/picture' }));
    </script>
    <script src="${baseUrl}/marimo/1.2.3/assets/main-x_1.js"></script>`;
  const { pictures, fault } = await drawCells({
    browser,
    html,
    baseUrl,
    cellIds: ['a', 'b', 'c', 'd'],
    scripts: new Map([
      [
        'https://127.0.0.1:1/given.js',
        "document.getElementById('output-c').innerHTML = '<svg width=300 height=200></svg>'",
      ],
    ]),
    signal: never,
  });
  assert.equal(fault, undefined);
  assert.deepEqual(asked, ['/marimo/1.2.3/assets/main-x_1.js']);
  assert.deepEqual([...pictures.keys()], ['a', 'c']);
});

test('the command waits for an output while the page waits for a file or is busy', { skip }, async (t) => {
  const lateMs = 2_500; // ten looks
  const script = `
const until = performance.now() + ${lateMs};
const { port1, port2 } = new MessageChannel();
port1.onmessage = () => {
  const pause = performance.now() + 100;
  while (performance.now() < pause);
  if (performance.now() < until) port2.postMessage('next');
  else ${DRAW};
};
port2.postMessage('first');`;
  const { baseUrl } = await startScripts(t, (response) => setTimeout(() => response.end(script), lateMs));
  const html = '<div id="output-a"></div><script async src="/marimo/v1/late.js"></script>';
  const { pictures } = await drawCells({
    browser,
    html,
    baseUrl,
    cellIds: ['a'],
    signal: never,
    quietLooks: 4,
  });
  assert.deepEqual([...pictures.keys()], ['a']);
});

test(`a report with many charts has pictures of ${MAX_PICTURES} charts`, {
  skip,
}, async (t) => {
  const { baseUrl } = await startScripts(t);
  const cellIds = Array.from({ length: MAX_PICTURES + 1 }, (_, i) => `c${i}`);
  const html = cellIds
    .map((id) => `<div id="output-${id}"><svg width="60" height="50"></svg></div>`)
    .join('');
  const drawn = await drawCells({ browser, html, baseUrl, cellIds, signal: never });
  assert.deepEqual([[...drawn.pictures.keys()], drawn.fault], [cellIds.slice(0, -1), undefined]);
});

test('a page that never ends its work, a browser that ends at once, and an abort leave no process and no folder', {
  skip,
}, async (t) => {
  const temporary = temporaryDirectory(t);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = temporary;
  t.after(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  const { baseUrl } = await startScripts(t);
  const request = { browser, html: '<script>for (;;);</script>', baseUrl, cellIds: ['a'] };
  const busy = await drawCells({ ...request, signal: never, timeoutMs: 3_000 });
  assert.deepEqual([busy.pictures.size, busy.fault], [0, 'drawing took longer than 3 seconds']);
  const ended = await drawCells({ ...request, browser: '/usr/bin/false', signal: never });
  assert.deepEqual([ended.pictures.size, ended.fault], [0, 'the browser has ended']);
  await assert.rejects(drawCells({ ...request, signal: AbortSignal.timeout(1_000) }), /timeout/);
  assert.deepEqual(readdirSync(temporary), []);
  assert.equal(spawnSync('pgrep', ['-f', temporary]).status, 1, 'a process is left');
});
