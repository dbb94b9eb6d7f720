import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Locator } from 'playwright-core';
import { notebookIn } from '#test/support/browser.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import type { Stage } from './stage.ts';

export async function views(t: TestContext, { server, browser }: Stage): Promise<void> {
  const { client } = server;
  const [loop, hog] = await Promise.all([
    openNotebook(
      server,
      { loop: "import time\nprint('tick')\nwhile True: time.sleep(0.05)" },
      { title: 'The loop' },
    ),
    openNotebook(
      server,
      { hog: "hog = b'x' * 250_000_000\nlen(hog)", table: TABLE, bad: '1 / 0' },
      { title: 'The hog' },
    ),
  ]);
  const finished = await hog.run([]);
  const hanging = await loop.submit([]);
  await writeFile(join(server.filesDir, 'notes.txt'), 'hello');
  const { page, complaints } = await browser.signIn(server);
  const open = (path: string) => page.evaluate(`location.hash = '#/ws_home/${path}'`);

  await t.test(
    'the overview shows which run hangs, which kernel uses most memory, and recent failures',
    async () => {
      const card = (title: string) =>
        page.locator('.card').filter({ has: page.getByRole('heading', { name: title }) });
      await card('Running longest').getByRole('link', { name: hanging }).waitFor();
      const kernels = card('Kernels with most memory').getByRole('listitem');
      await kernels.nth(1).waitFor();
      assert.match((await kernels.first().textContent()) ?? '', /The hog/);
      await card('Failed lately').getByRole('link', { name: finished.id }).waitFor();
    },
  );

  await t.test('the overview shows a refusal while it happens, with advice', async () => {
    const card = page.locator('.card').filter({ hasText: 'Refused since you opened the console' });
    await assert.rejects(loop.submit([]));
    await card.getByText('Wait until the session is ready again, or cancel its run.').waitFor();
  });

  await t.test('kernels are in the order of their memory', async () => {
    await open('kernels');
    const rows = page.getByRole('row').filter({ hasText: 'MiB' });
    await rows.nth(1).waitFor();
    assert.match((await rows.first().textContent()) ?? '', /^[2-9]\d\d MiB.*The hog/);
  });

  await t.test('a command that is refused in a list shows the whole reason', async () => {
    const row = page.getByRole('row').filter({ hasText: 'The loop' });
    await row.getByRole('button', { name: 'Hibernate' }).click();
    await row.getByRole('button', { name: 'Hibernate' }).click();
    const problem = page.getByRole('alert').filter({ hasText: 'session_busy' });
    await problem.waitFor();
    const [text, room] = await problem.evaluate((element) => [element.scrollWidth, element.clientWidth]);
    assert.equal(text, room);
  });

  await t.test(
    'the focus stays in place when a command asks for confirmation, and when it was refused',
    async () => {
      const row = page.getByRole('row').filter({ hasText: 'The loop' });
      await page.getByRole('button', { name: 'Hide' }).click();
      await row.getByRole('button', { name: 'Hibernate' }).focus();
      await page.keyboard.press('Enter');
      await row.getByRole('group', { name: 'Its variables are lost.' }).waitFor();
      assert.equal(await page.evaluate('document.activeElement.textContent'), 'No');
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').filter({ hasText: 'session_busy' }).waitFor();
      assert.equal(await page.evaluate('document.activeElement.textContent'), 'Hibernate');
    },
  );

  await t.test('the overview names the parts that could not be loaded, with the reasons', async () => {
    const { page: partial } = await browser.signIn(server, '#/ws_home/audit');
    await partial.route(/\/api\/v3\/(runs|kernels)/, (route) =>
      route.fulfill({ status: 500, json: { title: 'The server made an error', code: 'internal_error' } }),
    );
    await partial.evaluate("location.hash = '#/ws_home/overview'");
    for (const title of ['Running longest', 'Kernels with most memory', 'Failed lately'])
      await partial
        .locator('.card')
        .filter({ hasText: title })
        .getByText('The server made an error')
        .waitFor();
    await partial.close();
  });

  await t.test('a notebook shows the printed text of its cells while they run', async () => {
    await open('sessions');
    await page.getByRole('link', { name: 'The loop' }).click();
    const cell = page.getByRole('article', { name: 'Cell loop' });
    await cell.getByText('tick', { exact: true }).waitFor();
    await cell.locator('.badge', { hasText: 'running' }).waitFor();
  });

  await t.test(
    'open shows the page of a notebook in a new tab, from the list and from the session',
    async () => {
      const inNewTab = async (button: Locator) => {
        const opening = browser.context.waitForEvent('page');
        await button.click();
        const tab = await opening;
        await tab.waitForURL(`${server.baseUrl}/n/${loop.id}/`);
        await notebookIn(tab).locator('.cm-content').getByText('tick').first().waitFor();
        assert.equal(await tab.evaluate('window.opener'), null);
        await tab.close();
      };
      const button = { name: 'Open', exact: true };
      await inNewTab(page.getByRole('button', button));
      await open('sessions');
      await inNewTab(page.getByRole('row').filter({ hasText: 'The loop' }).getByRole('button', button));
      await page.getByRole('link', { name: 'The loop' }).click();
    },
  );

  await t.test(
    'if a notebook may not be opened, the new tab is closed again and the reason is shown',
    async () => {
      const stranger = await openNotebook(server, { a: '1' }, { title: 'Closed to viewers' });
      await stranger.close();
      const viewer = await addMember(server, 'viewer-of-pages', 'viewer');
      const hash = `#/ws_home/sessions/${stranger.id}`;
      const { page: looking } = await browser.signIn(server, hash, { token: viewer.token });
      const opening = browser.context.waitForEvent('page');
      await looking.getByRole('button', { name: 'Open', exact: true }).click();
      const tab = await opening;
      await looking.getByRole('alert').filter({ hasText: 'role_too_low' }).waitFor();
      assert.equal(tab.isClosed(), true);
      await looking.close();
    },
  );

  await t.test(
    'hibernating a busy session is refused with the reason, and cancelling its run ends it',
    async () => {
      await page.getByRole('button', { name: 'Hibernate' }).click();
      await page.getByRole('button', { name: 'Hibernate' }).click();
      const problem = page.getByRole('alert').filter({ hasText: 'session_busy' });
      await problem.getByText('Wait until the session is ready again, or cancel its run.').waitFor();
      await page.getByRole('button', { name: 'Cancel the run' }).click();
      await page.getByRole('heading', { level: 1 }).locator('..').getByText('live.ready').waitFor();
      assert.equal((await client.runs.get(hanging)).status, 'cancelled');
    },
  );

  await t.test(
    'a session is put to sleep and woken, and stays asleep while somebody looks at it',
    async () => {
      const state = page.getByRole('heading', { level: 1 }).locator('..');
      await page.getByRole('button', { name: 'Hibernate' }).click();
      await page.getByRole('button', { name: 'Hibernate' }).click();
      await state.getByText('dormant').waitFor();
      await page.reload();
      await page.getByLabel('Access token').fill(server.owner.token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await state.getByText('dormant').waitFor();
      await page.getByRole('article', { name: 'Cell loop' }).getByText('tick', { exact: true }).waitFor();
      assert.equal((await client.actor('notebook-session', loop.id)).path, 'dormant');
      await page.getByRole('button', { name: 'Wake' }).click();
      await state.getByText('live.ready').waitFor();
    },
  );

  await t.test('the page of a notebook lists its versions with their authors, and restores one', async () => {
    const versions = await openNotebook(server, { a: '"first"' }, { title: 'Versions' });
    await versions.close();
    const bob = await addMember(server, 'bob-of-versions', 'editor');
    const { updatedAt: expectedUpdatedAt } = versions.notebook;
    await bob.client.notebooks.update(versions.id, { expectedUpdatedAt, title: 'Changed' });
    await open(`sessions/${versions.id}`);
    await page.getByText('2 versions, the last change by bob-of-versions').click();
    await page.getByText('bob-of-versions: Changed, 1 cell (current)').waitFor();
    await page.getByRole('button', { name: 'Restore' }).click();
    await page.getByRole('button', { name: 'Restore' }).click();
    await page.getByText('3 versions').waitFor();
    assert.equal((await client.notebooks.get(versions.id)).title, 'Versions');
  });

  await t.test('a run shows its outputs for people, and the reason of its failure', async () => {
    await open(`runs?status=failed`);
    await page.getByRole('link', { name: `run ${finished.id}` }).click();
    await page.getByRole('columnheader', { name: 'city' }).waitFor();
    await page.getByRole('cell', { name: 'Paris' }).waitFor();
    await page.getByText('ZeroDivisionError: division by zero').first().waitFor();
  });

  await t.test('lists and tuples are shown as Python writes them', async () => {
    const lists = await openNotebook(server, {
      numbers: "[2**80, float('nan')]",
      tuple: "import marimo as mo\n(mo.md('# A'), 3)",
    });
    const run = await lists.run([]);
    for (const path of [`runs/${run.id}`, `sessions/${lists.id}`]) {
      await open(path);
      await page.getByText('[1208925819614629174706176, nan]', { exact: true }).waitFor();
      await page.getByText('(_md(), 3)', { exact: true }).waitFor();
    }
    await lists.close();
  });

  await t.test('many runs are cancelled at once', async () => {
    const again = await Promise.all(
      [loop, hog].map((notebook) => notebook.submit(notebook === loop ? [] : ['hog'])),
    );
    await open('runs?status=running');
    await page.getByLabel(`Choose ${again[0]}`).check();
    await page.getByRole('button', { name: /^Cancel 1 run/ }).click();
    await page.getByRole('button', { name: /^Cancel 1 run/ }).click();
    await client.waitForRun(again[0]!);
    assert.equal((await client.runs.get(again[0]!)).status, 'cancelled');
  });

  await t.test('a stream shows its events, and can be paused and filtered', async () => {
    await open(`streams/${loop.id}`);
    await page.getByText('session.snapshot').waitFor();
    await page.getByLabel('A part of an event').fill('cells-registered');
    await page.getByText('session.snapshot').waitFor({ state: 'detached' });
    await page.getByText('cells-registered').first().waitFor();
  });

  await t.test('the view of a stream keeps the beginning of a large event', async () => {
    const large = await openNotebook(server, {
      large: "import marimo as mo\nmo.Html('<p>' + 'x' * 1_000_000)",
    });
    await open(`streams/${large.id}`);
    await page.getByText('session.snapshot').waitFor();
    await large.run([]);
    await page.getByText('characters in all').waitFor();
    const lengths = await page
      .locator('.events li')
      .evaluateAll((events) => events.map(({ textContent }) => textContent?.length ?? 0));
    assert.ok(Math.max(...lengths) < 3_000, lengths.join());
    await large.close();
  });

  await t.test('the view of a session shows a large output that events only name', async () => {
    const code = 'class Picture:\n    def _repr_png_(self): return bytes(100_000)\nPicture()';
    const picture = await openNotebook(server, { picture: code });
    await open(`sessions/${picture.id}`);
    await page.getByText('class Picture').waitFor();
    await picture.run([]);
    await page.locator('article img.output[src^="blob:"]').waitFor({ state: 'attached' });
    await picture.close();
  });

  await t.test('the id of a session that is being typed stays while events come', async () => {
    await open('streams');
    const field = page.getByLabel('Id of a session', { exact: true });
    await field.fill(hog.id);
    await page.getByRole('button', { name: 'Clear' }).click();
    await hog.run(['table']);
    await page.locator('.events li').first().waitFor();
    assert.equal(await field.inputValue(), hog.id);
    await field.press('Enter');
    await page.getByRole('heading', { level: 1, name: `Stream of ${hog.id}` }).waitFor();
  });

  await t.test('the frame of an output shrinks with its HTML', async () => {
    const html =
      "class Page:\n    def _mime_(self): return 'text/html', f'<div style=\"height: {size}px\">x</div>'\nPage()";
    const resized = await openNotebook(server, { size: 'size = 600', html });
    await open(`sessions/${resized.id}`);
    await page.getByRole('article', { name: 'Cell html' }).waitFor();
    await resized.run([]);
    const frame = page.locator('iframe');
    await eventually('it is tall', async () => (await frame.boundingBox())?.height === 608);
    await resized.run({ type: 'cells', cells: [{ cellId: 'size', code: 'size = 60' }, { cellId: 'html' }] });
    await eventually('it is small', async () => (await frame.boundingBox())?.height === 68);
    await resized.close();
  });

  await t.test('files, people, tokens, keys and the audit are shown as lists', async () => {
    const seen: readonly (readonly [string, string])[] = [
      ['files', 'notes.txt'],
      ['people', 'owner'],
      ['people/tokens', 'everywhere'],
      ['keys', 'seals new records'],
      ['audit', 'session.hibernate'],
      ['datasources', 'There are no datasources'],
      ['agents', 'There are no conversations'],
    ];
    for (const [path, text] of seen) {
      await open(path);
      await page.getByText(text).first().waitFor();
    }
  });

  assert.deepEqual(complaints, []);
  await Promise.all([loop.close(), hog.close(), page.close()]);
}

const TABLE =
  "import pandas as pd\npd.DataFrame({'city': ['Paris', 'Oslo'], 'people': [2_100_000, 700_000]})";
