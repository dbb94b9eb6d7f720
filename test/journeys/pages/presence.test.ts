// tier: whole, because it opens many tabs and shows ten thousand actors for minutes
/**
 * The people and the agent in a notebook, as its page shows them in Chromium and as its stream
 * reports them.
 */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { BrowserContext, Page } from 'playwright-core';
import type { NotebookPresence } from '#src/contract/wire/presence.ts';
import { MAX_CHANGED_CELLS, MAX_PEOPLE } from '#src/notebook/pages/presence.ts';
import { NARROW, notebookIn, openBrowser, type WatchedPage, withoutBrowser } from '#test/support/browser.ts';
import { addMember, type TestMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const skip = withoutBrowser;
const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client, baseUrl } = server;

/** One part of marimo's front end finds no storage for column widths, and reports that. */
const isExpected = (complaint: string) => complaint.includes('localStorage');

/** Signs a person in with a browser of their own, and opens the notebook by its address. */
async function visit(t: TestContext, { token }: TestMember, notebookId: string): Promise<WatchedPage> {
  const browser = await openBrowser(t);
  await signInto(browser.context, token);
  const opened = await browser.openPath(server, `/n/${notebookId}/`);
  await notebookIn(opened.page).locator('#cell-a').waitFor();
  return opened;
}

async function signInto(context: BrowserContext, token: string): Promise<void> {
  const response = await context.request.post(`${baseUrl}/sign-in`, {
    headers: { authorization: `Bearer ${token}`, origin: baseUrl },
  });
  assert.ok(response.ok(), await response.text());
}

const present = (page: Page) => page.getByRole('list', { name: 'In this notebook' }).getByRole('listitem');
const panel = (page: Page) => page.getByRole('complementary', { name: 'People and agent' });

test('two people and the agent of a notebook see each other and the changed cells until they leave', {
  skip,
}, async (t) => {
  const [ada, bob] = [await addMember(server, 'ada', 'editor'), await addMember(server, 'bob', 'editor')];
  const notebook = await openNotebook(server, { a: 'a = 1' }, { title: 'Together' });
  const adas = await visit(t, ada, notebook.id);
  assert.equal(await present(adas.page).count(), 0, 'nobody else is here');
  const bobs = await visit(t, bob, notebook.id);
  await present(adas.page).filter({ hasText: 'bob' }).waitFor();
  await present(bobs.page).filter({ hasText: 'ada' }).waitFor();

  await adas.page.getByRole('button', { name: 'Agent' }).click();
  const code = [
    'import marimo._code_mode as cm',
    'async with cm.get_context() as ctx:',
    '    ctx.create_cell("made = 1", name="made_by_agent")',
  ].join('\n');
  model.script(
    (exchange) => exchange.calls(['run_python', { code }]).end('tool_calls'),
    (exchange) =>
      exchange
        .text(
          'There it is. It is **bold**, `made` and <b id="raw">raw</b>, [not a link](javascript:alert(1)).',
        )
        .text('\n\n```python\nmade = 1\n```\n')
        .text('[a]('.repeat(2500)) // parsers that look for the end of each link anew take minutes
        .end(),
  );
  await panel(adas.page).getByLabel('Prompt').fill('Make a cell.');
  await panel(adas.page).getByRole('button', { name: 'Send' }).click();
  await panel(adas.page).getByText('There it is.').waitFor();
  const answer = panel(adas.page).locator('.message.assistant .markdown').last();
  await answer.locator('strong', { hasText: 'bold' }).waitFor();
  await answer.locator('pre code', { hasText: 'made = 1' }).waitFor();
  await answer.getByText('<b id="raw">').waitFor();
  await answer.getByText('[a](').last().waitFor();
  assert.equal(await answer.locator('#raw, a').count(), 0, 'HTML and scripts in links are text');
  await panel(adas.page).locator('.message.user b', { hasText: /^ada$/ }).waitFor();
  await panel(adas.page).getByText('run_python').first().waitFor();
  const touched = panel(adas.page).getByRole('region', { name: 'Agent' });
  await touched.getByRole('button', { name: 'made_by_agent' }).click();
  await notebookIn(adas.page).locator('.cm-content', { hasText: 'made = 1' }).waitFor();

  await present(bobs.page).filter({ hasText: 'Agent of ada' }).waitFor();
  await bobs.page.getByRole('button', { name: 'Agent' }).click();
  const changes = panel(bobs.page).getByRole('region', { name: 'Changes' });
  await changes.getByText('Agent, asked by ada').waitFor();
  await changes.getByRole('button', { name: 'made_by_agent' }).waitFor();
  await panel(bobs.page).getByText('ada talks with the agent here').waitFor();

  await notebookIn(bobs.page).locator('#cell-a .cm-content').first().click();
  await bobs.page.keyboard.press('End');
  await bobs.page.keyboard.type('2');
  const seen = panel(adas.page).getByRole('region', { name: 'Changes' }).getByRole('listitem');
  await seen.filter({ hasText: 'bob' }).getByRole('button', { name: 'a = 12' }).waitFor();

  for (const { page } of [adas, bobs]) {
    await page.setViewportSize(NARROW);
    const width = await page.evaluate<number>('document.documentElement.scrollWidth');
    assert.ok(width <= NARROW.width, `${width} px`);
  }
  await bobs.page.close();
  await present(adas.page).filter({ hasText: 'bob' }).waitFor({ state: 'detached' });
  const complaints = [...adas.complaints, ...bobs.complaints].filter((one) => !isExpected(one));
  assert.deepEqual(complaints, []);
  await notebook.close();
  await adas.page.getByRole('button', { name: 'Open', exact: true }).waitFor();
});

test('a viewer sees the people in a notebook and has no conversation there', { skip }, async (t) => {
  const [carl, vera] = [await addMember(server, 'carl', 'editor'), await addMember(server, 'vera', 'viewer')];
  const notebook = await openNotebook(server, { a: 'a = 1' });
  const carls = await visit(t, carl, notebook.id);
  const veras = await visit(t, vera, notebook.id);
  await present(carls.page).filter({ hasText: 'vera' }).waitFor();
  await present(veras.page).filter({ hasText: 'carl' }).waitFor();
  await veras.page.getByRole('button', { name: 'People' }).click();
  await panel(veras.page).getByText('vera (you)').waitFor();
  assert.equal(await panel(veras.page).getByLabel('Prompt').count(), 0);
  await notebook.close();
});

test('the fourth notebook of a browser is shown without a frame, because a browser has six connections to a server', {
  skip,
}, async (t) => {
  const notebook = await openNotebook(server, { a: 'a = 1' });
  const browser = await openBrowser(t);
  await signInto(browser.context, server.owner.token);
  const paths: string[] = [];
  for (let tab = 0; tab < 8; tab++) {
    const { page } = await browser.openPath(server, `/n/${notebook.id}/`);
    const isFramed = tab < 3;
    await (isFramed ? notebookIn(page) : page).locator('#cell-a').waitFor();
    paths.push(new URL(page.url()).pathname);
  }
  const address = `/n/${notebook.id}/`;
  assert.deepEqual(paths, [...Array(3).fill(address), ...Array(5).fill(`${address}page/`)]);
  await notebook.close();
});

/** Follows the presence of a notebook as its page does, with the cookie of the page. */
async function follow(page: NotebookPageClient) {
  const abort = new AbortController();
  const response = await fetch(`${page.address}presence`, {
    headers: { cookie: page.cookie },
    signal: abort.signal,
  });
  assert.equal(response.status, 200);
  const states: NotebookPresence[] = [];
  const read = async () => {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      const frames = text.split('\n\n');
      text = frames.pop() ?? '';
      for (const frame of frames) {
        const message = JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '{}');
        if ('people' in message) states.push(message);
      }
    }
  };
  void read().catch(() => undefined);
  return { states, last: () => states.at(-1), stop: () => abort.abort() };
}

test(`${MAX_PEOPLE} people are named and further people are counted, and the last ${MAX_CHANGED_CELLS} changed cells of a person are kept`, async (t) => {
  const notebook = await openNotebook(server, { a: 'a = 1' });
  await using own = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await own.follow();
  const presence = await follow(own);
  t.after(presence.stop);
  const pages: NotebookPageClient[] = [];
  const join = async (userId: string) => {
    const member = await addMember(server, userId, 'viewer');
    const page = await NotebookPageClient.open(member.client, baseUrl, notebook.id);
    await page.follow();
    pages.push(page);
  };
  for (let i = 1; i < MAX_PEOPLE; i++) await join(`guest-${i}`);
  const counts = () => [presence.last()?.people.length, presence.last()?.morePeople];
  await eventually('all are named', async () => counts().join() === `${MAX_PEOPLE},0`);
  await join('one-more');
  await eventually('one is counted', async () => counts().join() === `${MAX_PEOPLE},1`);

  const create = (cellId: string) =>
    own.do('document/transaction', {
      changes: [
        {
          type: 'create-cell',
          cellId,
          code: `${cellId} = 1`,
          name: '_',
          config: {},
          before: null,
          after: 'a',
        },
      ],
    });
  const cells = () => presence.last()?.changes[0]?.cells.map(({ cellId }) => cellId) ?? [];
  for (let i = 1; i <= MAX_CHANGED_CELLS; i++) await create(`c${i}`);
  await eventually(
    'all are kept',
    async () => cells().length === MAX_CHANGED_CELLS && cells().includes('c1'),
  );
  await create('past');
  await eventually('the oldest is forgotten', async () => cells()[0] === 'past');
  assert.deepEqual([cells().length, cells().includes('c1')], [MAX_CHANGED_CELLS, false]);
  for (const page of pages) await page[Symbol.asyncDispose]();
  await eventually('they have left', async () => counts().join() === '1,0');
  await notebook.close();
});

test('the stream of people in a notebook accepts only the cookie of that notebook, and no page of another origin reads it', async () => {
  const notebook = await openNotebook(server, { a: 'a = 1' });
  const another = await openNotebook(server, { a: 'a = 1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  const ask = (notebookId: string, headers: Readonly<Record<string, string>>) =>
    fetch(`${baseUrl}/n/${notebookId}/presence`, { headers }).then(async (response) => {
      await response.body?.cancel();
      return response.status;
    });
  const { cookie } = page;
  assert.equal(await ask(notebook.id, { cookie }), 200);
  assert.equal(await ask(notebook.id, {}), 401);
  assert.equal(await ask(another.id, { cookie }), 401);
  assert.equal(await ask(notebook.id, { cookie, origin: 'null' }), 403);
  assert.equal(await ask(notebook.id, { cookie, 'sec-fetch-site': 'cross-site' }), 403);
  assert.equal(await ask(notebook.id, { authorization: `Bearer ${page.token}` }), 401);
  await notebook.close();
  assert.equal(await ask(notebook.id, { cookie }), 409);
  await another.close();
});
