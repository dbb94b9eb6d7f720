import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { hookReceiver } from '#test/support/stand-ins/hook-receiver.ts';
import type { Stage } from './stage.ts';

/** Longer than all intervals of the console, shorter than the silence after which a stream counts as lost. */
const WHILE_MS = 10_000;

/** Tests of the console's subscriptions and requests, in a visible and in a hidden tab. */
export async function live(t: TestContext, { server, browser, model }: Stage): Promise<void> {
  const { client } = server;
  const notebook = await openNotebook(server, { loop: 'while True: pass' }, { title: 'Live' });
  const { environmentId } = notebook;

  await t.test('the page of an actor is loaded again only when the actor has moved', async () => {
    const hash = `#/ws_home/actors/notebook-session/${notebook.id}`;
    const { page, complaints } = await browser.signIn(server, hash, { prepare: ownClock });
    const asked = requestsOf(page);
    const state = page.getByRole('heading', { level: 1 }).locator('..');
    await state.getByText('live.ready').waitFor();
    await eventually('it follows the actor', async () => (await client.server()).streams === 1);
    await page.getByRole('img', { name: 'The statechart' }).waitFor(); // the picture is loaded after the actor
    asked.length = 0;
    await page.clock.runFor(WHILE_MS);
    assert.equal(asked.join(), '');
    const run = await notebook.submit([]);
    await eventually('it asks for the actor', async () => {
      await page.clock.runFor(100);
      return asked.length > 0;
    });
    await state.getByText('live.busy.running').waitFor();
    assert.deepEqual([...new Set(asked)], [`/api/v3/actors/notebook-session/${notebook.id}`]);
    await client.runs.cancel(run);
    await client.waitForRun(run);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  await t.test('a hidden page follows nothing and requests nothing', async () => {
    const { page, complaints } = await browser.signIn(server, '', { prepare: ownClock });
    await page.getByRole('heading', { name: 'The server' }).waitFor();
    await eventually('it follows actors and server', async () => (await client.server()).streams === 2);
    await see(page, 'hidden');
    const asked = requestsOf(page);
    await eventually('it follows nothing', async () => {
      await page.clock.runFor(100);
      return (await client.server()).streams === 0;
    });
    asked.length = 0;
    await page.clock.runFor(WHILE_MS);
    assert.equal(asked.join(), '');
    await see(page, 'visible');
    await eventually('it follows again', async () => (await client.server()).streams === 2);
    assert.ok(asked.includes('/api/v3/runs'), asked.join());
    assert.deepEqual(complaints, []);
    await page.close();
  });

  const { page, complaints } = await browser.signIn(server);
  const open = (path: string) => page.evaluate(`location.hash = '#/ws_home/${path}'`);

  await t.test('the tree has a run within its session within its environment, while it runs', async () => {
    const run = await notebook.submit([]);
    await open(`actors?tree=true&q=${notebook.id}`);
    const rows = page.getByRole('table').getByRole('row');
    await rows.filter({ hasText: 'running.active' }).waitFor();
    const names = await page
      .locator('.rows .within')
      .evaluateAll((all) => all.map(({ className, textContent }) => [className, textContent]));
    assert.deepEqual(
      names.map(([depth, text]) => [depth, text?.replace(/_.*/, '')]),
      [
        ['within within-0', 'environment env'],
        ['within within-1', 'notebook-session Live'],
        ['within within-2', 'run run'],
      ],
    );
    await client.runs.cancel(run);
    await rows.filter({ hasText: 'running.active' }).waitFor({ state: 'detached' });
  });

  await t.test(
    'the tree has a job within the session of its notebook, while the job is at work',
    async () => {
      const target = { notebookId: notebook.id };
      const job = await client.jobs.create({ target, schedule: { cron: '0 7 1 1 *' } });
      await open(`actors?tree=true&q=${notebook.id}`);
      await client.jobs.run(job.id);
      const row = page.getByRole('table').getByRole('row').filter({ hasText: 'active.running' });
      await row.waitFor();
      assert.equal(await row.locator('.within').getAttribute('class'), 'within within-2');
      const [occurrence] = (await client.jobs.occurrences(job.id)).items;
      await client.runs.cancel(occurrence?.runId ?? '');
      await row.waitFor({ state: 'detached' });
      await client.jobs.delete(job.id);
    },
  );

  await t.test(
    'the tree shows when a hook sends, and its page has the picture of its statechart',
    async (part) => {
      const responses: ServerResponse[] = [];
      const receiver = await hookReceiver(part, (response) => responses.push(response));
      const hook = await client.hooks.create({ url: receiver.url, events: ['run.failed'] });
      await open(`actors?tree=true&q=${hook.id}`);
      const row = page.getByRole('table').getByRole('row').filter({ hasText: hook.id });
      await row.getByText('idle').waitFor();
      await client.hooks.test(hook.id);
      await row.getByText('sending').waitFor();
      await open(`actors/hook/${hook.id}`);
      await page.getByRole('img', { name: 'the present state is sending' }).waitFor();
      for (const response of responses) response.writeHead(204).end();
      await page.getByRole('img', { name: 'the present state is idle' }).waitFor();
      await client.hooks.delete(hook.id);
    },
  );

  await t.test('a conversation is shown with its tools, during an answer and after its closing', async () => {
    const { sessionId } = await client.agentSessions.open({
      environmentId,
      config: { instructions: 'Be brief.' },
    });
    const first = model.exchanges.length;
    model.script(
      () => {},
      (exchange) => exchange.text('There are ', 'none.').end(),
    );
    await open(`agents/${sessionId}`);
    await page.getByText('Be brief.').waitFor();
    const { runId } = await client.agentSessions.prompt(sessionId, 'Which datasources are there?');
    await page.getByText('Which datasources are there?').waitFor();
    const state = page.getByRole('heading', { level: 1 }).locator('..');
    await state.getByText('busy').waitFor();
    const exchange = await model.asked(first);
    exchange.text('Let me ');
    await page.getByRole('listitem').filter({ hasText: 'thinking' }).getByText('Let me').waitFor();
    exchange.text('look.').calls(['list_datasources', {}]).end('tool_calls');
    await page.getByText('Let me look.').waitFor();
    await page.getByText('calls list_datasources').waitFor();
    await page.getByText('There are none.').waitFor();
    await client.waitForRun(runId);
    await state.getByText('ready').waitFor();
    await page.getByText('thinking').waitFor({ state: 'detached' });
    await client.agentSessions.close(sessionId);
    await state.getByText('closed').waitFor();
    await open('overview');
    await open(`agents/${sessionId}`);
    await page.getByText('There are none.').waitFor();
  });

  await t.test(
    'text that is printed piece by piece is shown as one text, and a progress bar replaces itself',
    async () => {
      const printing = await openNotebook(server, {
        dots: "import time\nfor _ in range(5):\n    print('.', end='', flush=True)\n    time.sleep(0.1)\nprint('done')",
        bar: "import sys\nfor _part in range(5):\n    sys.stderr.write(f'\\r{_part * 25} % of it')\n    time.sleep(0.1)",
      });
      const texts = (cell: string) =>
        page.getByRole('article').filter({ hasText: cell }).locator('.printed pre').allTextContents();
      await open(`sessions/${printing.id}`);
      await page.getByRole('article', { name: 'Cell bar' }).waitFor();
      const run = await printing.run([]);
      await page.getByRole('article', { name: 'Cell bar' }).getByText('100 % of it').waitFor();
      assert.deepEqual(await texts('dots'), ['.....done\n']);
      assert.deepEqual(await texts('bar'), ['100 % of it']);
      await open(`runs/${run.id}`);
      await page.getByText('100 % of it', { exact: true }).waitFor();
      await printing.close();
    },
  );

  await t.test('a prompt can be cancelled in the view of its conversation', async () => {
    const { sessionId } = await client.agentSessions.open({ environmentId });
    model.script((exchange) => exchange.text('Endless'));
    const { runId } = await client.agentSessions.prompt(sessionId, 'Go on.');
    await open(`agents/${sessionId}`);
    await page.getByText('Endless').waitFor();
    await page.getByRole('button', { name: 'Cancel the prompt' }).click();
    assert.equal((await client.waitForRun(runId)).status, 'cancelled');
    await page.getByRole('button', { name: 'Cancel the prompt' }).waitFor({ state: 'detached' });
    await client.agentSessions.close(sessionId);
  });

  await t.test('testing a datasource shows its success or the reason of the failure', async () => {
    await client.files.put('shown.db', Buffer.alloc(0)); // which is an empty database
    await client.datasources.create({ slug: 'works', connection: { kind: 'sqlite', path: 'shown.db' } });
    await client.datasources.create({
      slug: 'fails',
      connection: {
        kind: 'postgres',
        connection_string: 'postgres://nobody@127.0.0.1:1/none',
        schema: 'public',
      },
    });
    await open('datasources');
    const row = (slug: string) => page.getByRole('row').filter({ hasText: slug });
    await row('works').getByRole('button', { name: 'Test' }).click();
    await row('works').getByText('answers in').waitFor();
    await row('fails').getByRole('button', { name: 'Test' }).click();
    await row('fails').locator('.bad').waitFor();
    await client.datasources.delete('works');
    await client.datasources.delete('fails');
  });

  await t.test('the address of a stream is copied, with a clipboard and without one', async () => {
    await browser.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await open(`streams/${notebook.id}`);
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    assert.ok(copied.startsWith('curl -N -H "Authorization: Bearer $TOKEN"'), copied);
    assert.ok(!copied.includes(server.owner.token));
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    await page.getByRole('button', { name: 'Copy as troupe' }).click();
    const field = page.getByLabel('A part of an event');
    await field.focus();
    await page.keyboard.press('Control+v');
    assert.equal(await field.inputValue(), `troupe sessions events ${notebook.id}`);
  });

  await t.test('a copied command runs no code that the link to the page hides', async () => {
    const id = "x'; echo owned\n$(echo owned)`echo owned`";
    await open(`streams/${encodeURIComponent(id).replaceAll("'", '%27')}`);
    await page.getByRole('heading', { level: 1, name: 'Stream of x' }).waitFor();
    for (const [label, program] of [
      ['Copy as curl', 'curl'],
      ['Copy as troupe', 'troupe'],
    ] as const) {
      const command = (await page.getByRole('button', { name: label }).getAttribute('title')) ?? '';
      const script = `${program}() { printf '%s\\0' "$@"; }\n${command}`;
      const words = execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8', env: {} }).split('\0');
      assert.equal(words.length, command.startsWith('curl') ? 7 : 4, command);
      assert.ok(
        words.some((word) => decodeURIComponent(word).includes(id)),
        command,
      );
    }
  });

  await t.test('an event of an earlier day has its date', async () => {
    const { page: tomorrow } = await browser.signIn(
      server,
      `#/ws_home/actors/notebook-session/${notebook.id}`,
      {
        prepare: (opened) => opened.clock.install({ time: Date.now() + 24 * 3600 * 1000 }),
      },
    );
    const times = tomorrow.locator('.trail time');
    await times.first().waitFor();
    assert.match((await times.first().textContent()) ?? '', /^\d{1,2} \w+ \d{4}, \d\d:\d\d:\d\d$/);
    await tomorrow.close();
  });

  await t.test('a session that is closed still shows its notebook', async () => {
    await notebook.close();
    await open(`sessions/${notebook.id}`);
    await page.getByRole('article', { name: 'Cell loop' }).getByText('while True: pass').waitFor();
  });

  assert.deepEqual(complaints, []);
  await page.close();
}

/** The page's clock advances only when the test advances it. */
async function ownClock(page: Page): Promise<void> {
  await page.clock.install();
}

/** Returns a list to which the paths of requests are added, streams left out. */
function requestsOf(page: Page): string[] {
  const paths: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (!pathname.endsWith('/events')) paths.push(pathname);
  });
  return paths;
}

async function see(page: Page, visibility: 'hidden' | 'visible'): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'visibilityState', { value: '${visibility}', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  `);
}
