/** Widgets of anywidget in files that are made of a run: their state is saved with the outputs. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { pythonWithLibraries } from '#test/support/python-with-libraries.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const { python, absence } = pythonWithLibraries();
const skip = absence || withoutBrowser;
const server = await startServer(test, { ...(absence ? {} : { TROUPE_PYTHON: python }) });
const shell = new Shell(test, server);

const WIDGET = `
import anywidget, traitlets
class Counter(anywidget.AnyWidget):
    _esm = """
    function render({ model, el }) {
      const bytes = new Uint8Array(model.get("picture").buffer);
      el.innerHTML = '<div style="width:200px;height:80px;background:teal">count is ' + model.get("count") + ", byte " + bytes[1] + "</div>";
    }
    export default { render };
    """
    count = traitlets.Int(1).tag(sync=True)
    picture = traitlets.Bytes(bytes([3, 7])).tag(sync=True)
    filling = traitlets.Unicode("").tag(sync=True)
counter = Counter()`;
const CELLS = {
  make: WIDGET,
  show: 'counter',
  broken: `class B(anywidget.AnyWidget):
    _esm = "import x from 'https://127.0.0.1:1/x.js'; export default { render() {} }"
B()`,
  thrower: `class T(anywidget.AnyWidget):
    _esm = "export default { render() { throw new Error(1) } }"
T()`,
  later: 'counter.count = 42',
};

async function report(cells: Readonly<Record<string, string>>, name: string, ...options: string[]) {
  writeFileSync(join(shell.cwd, `${name}.py`), marimoFile(cells));
  const env = { PATH: process.env.PATH ?? '' };
  const ran = await shell.troupe(['run', `${name}.py`, '-o', `${name}.html`, ...options], { env });
  assert.equal(ran.exitCode, 0, ran.err);
  return { ...ran, html: readFileSync(join(shell.cwd, `${name}.html`), 'utf8') };
}

test('an exported page shows a widget in its last state, without a kernel', { skip }, async (t) => {
  const { html } = await report(CELLS, 'page', '--front-end', 'server');
  const browser = await openBrowser(t);
  const page = await browser.context.newPage();
  await page.route('**/page.html', (route) => route.fulfill({ contentType: 'text/html', body: html }));
  await page.goto(`${server.baseUrl}/page.html`);
  await page.getByText('count is 42, byte 7').waitFor();
});

test('a static report has pictures of widgets, and names widgets that fail, need the network or are too large', {
  skip,
}, async () => {
  const large = { ...CELLS, small: 'Counter(count=5)', later: 'counter.filling = "x" * (8 << 20)' };
  const { err, html } = await report(large, 'static');
  assert.match(err, /only the text of show: a widget, broken: a widget, thrower: a widget:/);
  assert.equal([...html.matchAll(/<img alt="[^"]*" src="data:image\/png/g)].length, 1);
  const reason =
    /is not shown, because its state takes 8\.0 MiB, and a notebook keeps 8 MiB of all widgets\./;
  assert.match(html, reason);
  assert.match(err, reason);
});
