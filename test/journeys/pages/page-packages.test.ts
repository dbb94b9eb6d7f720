/** The panel for packages of a notebook's page, with an index on loopback. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startPackageIndex } from '#test/support/stand-ins/package-index.ts';

const index = await startPackageIndex(test, [
  { name: 'greeting', version: '1.0', code: 'text = "hello"' },
  { name: 'greeting', version: '2.0', code: 'text = "good day"' },
  { name: 'needing', version: '1.0', code: '', requires: ['greeting>=2'] },
]);
const server = await startServer(test, { TROUPE_PACKAGES: 'true', TROUPE_PACKAGE_INDEX: index.url });
const { client, baseUrl } = server;

interface Outcome {
  readonly success: boolean;
  readonly restartRequired?: boolean;
  readonly error?: string;
}

async function read(page: NotebookPageClient, path: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${page.token}` };
  const response = await fetch(`${page.address}api/packages/${path}`, { headers });
  assert.equal(response.status, 200, path);
  return response.json();
}

async function change(page: NotebookPageClient, path: 'add' | 'remove', name: string): Promise<Outcome> {
  const response = await page.send(`packages/${path}`, { package: name });
  assert.equal(response.status, 200, path);
  return (await response.json()) as Outcome;
}

test('a page is refused a line of packages with a million blanks at once', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  for (const path of ['add', 'remove']) {
    const response = await page.send(`packages/${path}`, { package: `a${' '.repeat(1_000_000)}b` });
    assert.equal(response.status, 400, path);
    assert.match(await response.text(), /package has more than \d+ characters/);
  }
});

test('a page that may edit adds and removes packages of the workspace, and says that the kernel must be restarted', async () => {
  const notebook = await openNotebook(server, { a: 'import greeting\nprint(greeting.text)' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  assert.deepEqual(await read(page, 'list'), { packages: [] });
  assert.deepEqual(await change(page, 'add', 'needing  greeting >= 1'), {
    success: true,
    restartRequired: true,
  });
  const { items } = await client.packages.list();
  assert.deepEqual(
    items.map(({ requirement }) => requirement),
    ['greeting>=1', 'needing'],
  );
  assert.deepEqual(await read(page, 'list'), {
    packages: [
      { name: 'greeting', version: '2.0' },
      { name: 'needing', version: '1.0' },
    ],
  });
  const removed = await change(page, 'remove', 'Greeting');
  assert.deepEqual(removed, { success: true, restartRequired: true });
  const again = await change(page, 'remove', 'greeting');
  assert.equal(again.success, false);
  assert.match(again.error ?? '', /another package needs it/);
  await page.do('kernel/restart_session');
  assert.equal((await notebook.run({ type: 'all' })).status, 'completed', 'the new kernel has the package');
  const { packages } = Object(await read(page, 'list'));
  assert.deepEqual(packages, [
    { name: 'greeting', version: '2.0' },
    { name: 'needing', version: '1.0' },
  ]);
  const { tree } = Object(await read(page, 'tree'));
  assert.deepEqual(tree.dependencies, [{ name: 'needing', version: '1.0', tags: [], dependencies: [] }]);
  const { items: entries } = await client.audit({});
  const noted = entries.filter(({ action }) => /^package|restart/.test(action)).reverse();
  assert.deepEqual(
    noted.map(({ action, target, userId, address }) => [action, target, userId, address]).sort(),
    [
      ['package.add', 'greeting>=1', 'owner', '127.0.0.1'],
      ['package.add', 'needing', 'owner', '127.0.0.1'],
      ['package.remove', 'Greeting', 'owner', '127.0.0.1'],
      ['session.restart', notebook.id, 'owner', '127.0.0.1'],
    ],
  );
  await client.packages.remove('needing');
  await notebook.close();
  assert.equal((await page.send('packages/add', { package: 'greeting' })).status, 409);
});

test('a page with the right to look, or to use elements, reads packages and changes none', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  for (const access of ['view', 'interact'] as const) {
    await using page = await NotebookPageClient.open(client, baseUrl, notebook.id, { access });
    assert.deepEqual(await read(page, 'list'), { packages: [] });
    for (const path of ['packages/add', 'packages/remove', 'kernel/restart_session'])
      assert.equal((await page.send(path, { package: 'greeting' })).status, 403, path);
  }
  assert.deepEqual((await client.packages.list()).items, []);
  await notebook.close();
  const app = await openNotebook(server, { a: '1' }, { mode: 'run' });
  await using page = await NotebookPageClient.open(client, baseUrl, app.id);
  assert.equal((await page.send('packages/add', { package: 'greeting' })).status, 409, 'it is an app');
  await app.close();
});

test('a line names up to 50 packages of 300 characters, and a refusal is shown with its reason', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  const statusOf = async (line: unknown) => (await page.send('packages/add', { package: line })).status;
  const named = (count: number) => Array.from({ length: count }, (_, i) => `nothing-${i}`).join(' ');
  assert.equal(await statusOf(named(50)), 200);
  assert.equal(await statusOf(named(51)), 400);
  assert.equal(await statusOf('n'.repeat(300)), 200);
  assert.equal(await statusOf('n'.repeat(301)), 400);
  for (const wrong of ['', ' ', 'a\nb', 1, null]) assert.equal(await statusOf(wrong), 400, String(wrong));
  for (const wrong of [
    'no-such-package',
    'greeting @ http://127.0.0.1:1/g.whl',
    '--index-url=http://127.0.0.1:1/',
  ]) {
    const { success, error } = await change(page, 'add', wrong);
    assert.equal(success, false);
    assert.ok((error ?? '').length > 10, wrong);
  }
  assert.deepEqual((await client.packages.list()).items, []);
  await notebook.close();
});
