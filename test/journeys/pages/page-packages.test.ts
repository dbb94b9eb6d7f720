/** The panel for packages of a notebook's page, with an index on loopback. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { cellOf, notebookIn, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startPackageIndex } from '#test/support/stand-ins/package-index.ts';

const index = await startPackageIndex(test, [
  { name: 'greeting', version: '1.0', code: 'text = "hello"' },
  { name: 'greeting', version: '2.0', code: 'text = "good day"' },
  { name: 'needing', version: '1.0', code: '', requires: ['greeting>=2'] },
]);
index.add({ name: 'rarity', version: '1.5', code: 'text = "it is rare"' });
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

test('a line of packages with a million blanks from a page is refused without delay', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  for (const path of ['add', 'remove']) {
    const response = await page.send(`packages/${path}`, { package: `a${' '.repeat(1_000_000)}b` });
    assert.equal(response.status, 400, path);
    assert.match(await response.text(), /package has more than \d+ characters/);
  }
});

test('a page that may edit adds and removes packages of the workspace, and shows that the kernel must be restarted', async () => {
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

test('a page with the access view or interact reads packages, but cannot change them', async () => {
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

interface Installed extends Outcome {
  readonly isInstalling?: boolean;
}

test('only a person who may edit gets the offer of a missing package, and can install the package for the workspace', async () => {
  const notebook = await openNotebook(server, { a: 'import greeting\nprint(greeting.text)', b: '"later"' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await using viewer = await NotebookPageClient.open(client, baseUrl, notebook.id, { access: 'view' });
  await page.follow();
  await viewer.follow();
  await page.do('kernel/run', { cellIds: ['a'], codes: ['import greeting\nprint(greeting.text)'] });
  const offer = await page.next(({ op }) => op === 'missing-package-alert');
  assert.deepEqual([offer.packages, offer.isolated, offer.source], [['greeting'], true, 'kernel']);
  await eventually('the run has ended', async () => (await notebook.record()).status === 'ready');
  await using later = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await later.follow();
  const again = await later.next(({ op }) => op === 'missing-package-alert');
  assert.deepEqual(again.packages, ['greeting'], 'a page that is loaded later offers the package, too');
  await page.do('kernel/run', { cellIds: ['b'], codes: ['"later"'] });
  await viewer.next(({ op, cell_id, output }) => op === 'cell-op' && cell_id === 'b' && output != null);
  assert.equal(
    viewer.messages.some(({ op }) => op === 'missing-package-alert'),
    false,
  );
  const install = (versions: unknown, source = 'kernel') =>
    page.send('packages/install', { manager: 'pip', versions, source });
  const refused: readonly unknown[] = [
    null,
    {},
    { greeting: '1.0; x' },
    { greeting: 1 },
    { ['g'.repeat(301)]: '' },
    { ['g'.repeat(298)]: '1.0' },
    Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`nothing-${i}`, ''])),
  ];
  for (const versions of refused)
    assert.equal((await install(versions)).status, 400, JSON.stringify(versions));
  assert.equal((await install({ greeting: '' }, 'server')).status, 400);
  assert.equal((await viewer.send('packages/install', { versions: { greeting: '' } })).status, 403);
  const wrong = (await (await install({ 'no-such-package': '' })).json()) as Installed;
  assert.deepEqual([wrong.success, wrong.isInstalling], [false, undefined]);
  assert.match(wrong.error ?? '', /no-such-package/);
  const done = (await (await install({ greeting: '1.0' })).json()) as Installed;
  assert.deepEqual(done, { success: true, restartRequired: true });
  assert.deepEqual(
    (await client.packages.list()).items.map(({ requirement }) => requirement),
    ['greeting==1.0'],
  );
  await using last = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await last.follow();
  await page.do('kernel/run', { cellIds: ['b'], codes: ['"last"'] });
  await last.next(
    ({ op, cell_id, output }) => op === 'cell-op' && cell_id === 'b' && /last/.test(JSON.stringify(output)),
  );
  assert.equal(
    last.messages.some(({ op }) => op === 'missing-package-alert'),
    false,
    'the workspace has the package now',
  );
  const { items: entries } = await client.audit({});
  assert.ok(entries.some(({ action, target }) => action === 'package.add' && target === 'greeting==1.0'));
  await client.packages.remove('greeting');
  await notebook.close();
});

test('a page shows that its installation waits for another installation', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  index.add({ name: 'slow', version: '1.0', code: '' });
  const release = index.hold();
  const first = page.send('packages/install', { versions: { slow: '' } });
  const installation = async () => Object(await read(page, 'installation')).installation;
  await eventually('the installation is shown', async () => (await installation()) !== null);
  assert.deepEqual((await installation()).requirements, ['slow']);
  const second = await page.send('packages/install', { versions: { greeting: '' } });
  assert.deepEqual(await second.json(), { success: false, isInstalling: true, requirements: ['greeting'] });
  release();
  assert.equal(((await (await first).json()) as Installed).success, true);
  assert.equal(await installation(), null);
  await client.packages.remove('slow');
  await notebook.close();
});

test('in a browser, the page offers to install a missing package, shows the progress, and restarts the kernel', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, { a: 'import rarity\nprint(rarity.text)' });
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page, complaints } = await browser.openPath(server, url);
  await cellOf(page, 'a').getByTestId('run-button').first().click();
  await notebookIn(page).getByTestId('install-packages-button').click();
  await notebookIn(page).getByText('installed for all notebooks of the workspace').first().waitFor();
  await notebookIn(page).getByRole('button', { name: 'Restart Kernel' }).first().click();
  const confirm = notebookIn(page).getByRole('button', { name: /^(confirm )?restart$/i });
  await page.evaluate(
    `globalThis.lost = 0;
    new MutationObserver(() => { if (document.querySelector(".away") !== null) globalThis.lost++; })
      .observe(document.body, { subtree: true, childList: true })`,
  );
  await confirm.first().click();
  await eventually('the new kernel is asked', async () => {
    const frame = page.frames().find((one) => one.url().endsWith('/page/'));
    return frame !== undefined && (await notebookIn(page).getByText('Restart Kernel').count()) === 0;
  });
  await cellOf(page, 'a').getByTestId('run-button').first().click();
  await cellOf(page, 'a').getByText('it is rare').first().waitFor();
  assert.equal(
    await page.evaluate('globalThis.lost'),
    0,
    'a restart does not count as a server that is away',
  );
  assert.deepEqual(
    complaints.filter((one) => one.includes('pypi')),
    [],
  );
  assert.equal(await notebookIn(page).locator('#troupe-refusals').count(), 0);
  await client.packages.remove('rarity');
  await notebook.close();
});

test('a page that requests a package from a server without installations gets the reason of the refusal', async (t) => {
  const without = await startServer(t, { TROUPE_PACKAGES: 'false' });
  const notebook = await openNotebook(without, { a: '1' });
  await using page = await NotebookPageClient.open(without.client, without.baseUrl, notebook.id);
  const answer = await page.send('packages/install', { versions: { greeting: '' } });
  const { success, error } = (await answer.json()) as Installed;
  assert.equal(success, false);
  assert.match(error ?? '', /installs no packages|packages/i);
  await notebook.close();
});
