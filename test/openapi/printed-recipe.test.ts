// tier: whole, because it generates, installs and compiles clients
/** The recipe for `EventSource` in docs/api.md, run as it is printed against a server that often cannot be reached. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import { openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { type RefusingProxy, startRefusingProxy } from '#test/support/refusing-proxy.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const GENERATORS = join(PACKAGE_ROOT, '.setup/generators');
const PROGRAM = 'printed-recipe.mjs';
const page = readFileSync(join(PACKAGE_ROOT, 'docs/api.md'), 'utf8');
const recipes = [...page.matchAll(/```js\n([\s\S]*?)```/g)].flatMap(([, code = '']) =>
  code.includes('new EventSource(') ? [code] : [],
);
const RECIPE = recipes[0] ?? '';

const server = await startServer(test);

test('the page has one recipe for EventSource', () => {
  assert.equal(recipes.length, 1);
});

/** Makes the next requests fail in every way in which a request for a ticket and a stream can. */
function refuse({ refusals }: RefusingProxy): void {
  refusals.POST.push(
    { cut: 'before' },
    { status: 429, headers: { 'retry-after': '1' } },
    { cut: 'within' },
    { status: 503, headers: { 'retry-after': '1' } },
    { status: 502 },
  );
  refusals.GET.push({ status: 503, headers: { 'retry-after': '1' } }, { status: 429 }, { cut: 'before' });
}

/** Runs cells while `events` are received through the proxy, whose connections are cut, and closes the session. */
async function disturb(
  notebook: Awaited<ReturnType<typeof openNotebook>>,
  proxy: RefusingProxy,
  events: readonly NotebookStreamEvent[],
): Promise<void> {
  const printed = () =>
    events.flatMap((event) => (event.type === 'console-output' ? [event.data.text] : [])).join('');
  const patience = 60_000;
  await eventually('the first state', () => events.some(({ type }) => type === 'session.replayed'), patience);
  assert.deepEqual(proxy.refusals, { POST: [], GET: [] }, 'every refusal was met');
  for (const text of ['one', 'two']) {
    const code = `print("${text}")`;
    refuse(proxy);
    proxy.cut();
    await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code }] });
    await eventually(text, () => printed().endsWith(`${text}\n`), patience);
    assert.deepEqual(proxy.refusals, { POST: [], GET: [] });
  }
  await notebook.close();
  await eventually('the end', () => events.some(({ type }) => type === 'session.closed'), patience);
  const missed = events.flatMap((event) =>
    event.type === 'console-output' && event.missed ? [event.data.text] : [],
  );
  assert.deepEqual(missed, ['one\n', 'two\n'], 'each reconnection continued after the last event');
}

test('in Node.js the recipe survives failed ticket requests, 429, 503 and broken connections, and ends with the session', async (t) => {
  const folder = mkdtempSync(join(GENERATORS, 'made-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(join(PACKAGE_ROOT, 'test/openapi/programs', PROGRAM), join(folder, PROGRAM));
  const notebook = await openNotebook(server, { a: '1' });
  const proxy = await startRefusingProxy(t, server.baseUrl);
  refuse(proxy);
  const { PATH, HOME } = process.env;
  const own = { RECIPE, BASE: proxy.baseUrl, TOKEN: OWNER.token, WORKSPACE: OWNER.workspaceId };
  const env = { PATH, HOME, ...own, SESSION: notebook.id };
  const child = spawn(process.execPath, [join(folder, PROGRAM)], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const exit = once(child, 'exit');
  const events: NotebookStreamEvent[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => events.push(JSON.parse(line)));
  await disturb(notebook, proxy, events);
  assert.deepEqual(await exit, [0, null], 'the program ended by itself');
});

test('in Chromium the recipe survives failed ticket requests, 429, 503 and broken connections', {
  skip: withoutBrowser,
}, async (t) => {
  const notebook = await openNotebook(server, { a: '1' });
  const proxy = await startRefusingProxy(t, server.baseUrl, '<!doctype html><title>Events</title>');
  const { context } = await openBrowser(t);
  const tab = await context.newPage();
  await tab.goto(`${proxy.baseUrl}/page`);
  refuse(proxy);
  const events: NotebookStreamEvent[] = [];
  await tab.exposeFunction('show', (event: NotebookStreamEvent) => events.push(event));
  const own = { base: proxy.baseUrl, token: OWNER.token, workspace: OWNER.workspaceId };
  const program = `const { base, token, workspace } = ${JSON.stringify(own)};\n${RECIPE}\nfollow('${notebook.id}');`;
  await tab.addScriptTag({ content: program });
  await disturb(notebook, proxy, events);
});
