/** The panel for secrets of a notebook's page. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client, baseUrl } = server;
/** Written in two halves, so that no other text has it. */
const HIDDEN = ['a-value', 'to-hide'].join('-');
const MAX_CHARS = 65_536;
const sent = (key: unknown, value: unknown) => ({ key, value, provider: 'dotenv', name: 'This notebook' });

test('a page that may edit adds secrets and gets their names, the next kernel has the secrets, and no answer has a value', async () => {
  const code = 'import os\nprint(os.environ.get("TOKEN"))';
  const notebook = await openNotebook(server, { show: code });
  await client.notebooks.setSecret(notebook.id, 'EARLIER', HIDDEN);
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  const answers: string[] = [];
  const ask = async (path: string, body: unknown) => {
    const response = await page.send(path, body);
    answers.push(await response.text());
    return response.status;
  };
  assert.equal(await ask('secrets/create', sent('TOKEN', 'to be replaced')), 200);
  assert.equal(await ask('secrets/create', sent('TOKEN', HIDDEN)), 200);
  assert.equal(await ask('secrets/create', sent('1TOKEN', HIDDEN)), 400);
  assert.equal(await ask('secrets/create', sent('TOKEN', `${HIDDEN}\0`)), 400);
  assert.equal(await ask('secrets/keys', { requestId: 'r1' }), 200);
  const { secrets } = await page.next(({ op }) => op === 'secret-keys-result');
  const [{ provider, keys }] = secrets as [{ provider: string; keys: readonly string[] }];
  assert.deepEqual([provider, keys], ['dotenv', ['EARLIER', 'TOKEN']]);
  await page.do('kernel/restart_session');
  const run = await notebook.run({ type: 'all' });
  assert.equal(results(run).map(printed).join('').trim(), HIDDEN);
  const { items } = await client.audit({ action: 'notebook-secret' });
  assert.deepEqual(
    items.map(({ action, target, detail, userId }) => [action, target, detail, userId]),
    ['EARLIER', 'TOKEN', 'TOKEN'].map((name) => ['notebook-secret.set', notebook.id, name, items[0]?.userId]),
  );
  for (const text of [...answers, JSON.stringify(server.log), JSON.stringify(items)])
    assert.equal(text.includes(HIDDEN), false, text);
  await notebook.close();
});

test('a page with the access view or interact, and a page of an app, cannot add secrets', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  for (const access of ['view', 'interact'] as const) {
    await using page = await NotebookPageClient.open(client, baseUrl, notebook.id, { access });
    assert.equal((await page.send('secrets/keys', { requestId: 'r1' })).status, 403);
    assert.equal((await page.send('secrets/create', sent('TOKEN', 'x'))).status, 403);
  }
  await notebook.close();
  const app = await openNotebook(server, { a: '1' }, { mode: 'run' });
  await using page = await NotebookPageClient.open(client, baseUrl, app.id);
  assert.equal((await page.send('secrets/create', sent('TOKEN', 'x'))).status, 409);
  for (const { id } of [notebook, app]) assert.deepEqual(await client.notebooks.secrets(id), []);
  await app.close();
});

test('a page can add 100 secrets of 65,536 characters with names of 128 characters, and no more or longer ones', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  const add = async (key: unknown, value: unknown) =>
    (await page.send('secrets/create', sent(key, value))).status;
  const longest = 'N'.repeat(128);
  assert.equal(await add(longest, 'x'.repeat(MAX_CHARS)), 200);
  assert.equal(await add('MORE', 'x'.repeat(MAX_CHARS + 1)), 400);
  for (const name of [`${longest}N`, '', 'a-b', 1, null])
    assert.equal(await add(name, 'x'), 400, String(name));
  for (const value of ['', 1, null]) assert.equal(await add('MORE', value), 400, String(value));
  for (let at = 1; at < 100; at++) assert.equal(await add(`N${at}`, 'x'), 200);
  assert.equal(await add('MORE', 'x'), 429);
  assert.equal(await add('N1', 'another'), 200, 'it takes the place of one of the 100');
  assert.equal((await client.notebooks.secrets(notebook.id)).length, 100);
  await notebook.close();
});
