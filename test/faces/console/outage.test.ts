// tier: whole, because it keeps a browser busy while a server is killed and comes back
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const OUTAGE_S = 120;

const owner = { after };

test('the console during and after an outage of the server', { skip: withoutBrowser }, async (t) => {
  const server = await startServer(owner);
  const browser = await openBrowser(owner);
  const { client } = server;
  const notebook = await openNotebook(server, { loop: 'while True: pass' }, { title: 'Survivor' });
  const open = async (hash: string) => {
    const prepare = (opened: Page) => opened.clock.install();
    const { page } = await browser.signIn(server, hash, { prepare });
    return page;
  };
  const state = (page: Page) => page.getByRole('heading', { level: 1 }).locator('..');
  const notice = (page: Page) => page.getByRole('status').filter({ hasText: 'The server does not answer' });

  for (const [view, shown] of [
    ['overview', (page: Page) => page.locator('.tile').filter({ hasText: 'Notebook sessions' })],
    [
      'actors',
      (page: Page) =>
        page.getByRole('row').filter({ hasText: notebook.id }).filter({ hasText: 'notebook-session' }),
    ],
    ['sessions', (page: Page) => page.getByRole('row').filter({ hasText: 'Survivor' })],
    [`sessions/${notebook.id}`, state],
    [`actors/notebook-session/${notebook.id}`, state],
  ] as const) {
    await t.test(
      `after two minutes without the server, ${view.replace(/nb_.*/, '…')} is live again`,
      async () => {
        const page = await open(`#/ws_home/${view}`);
        await shown(page).first().getByText('ready').first().waitFor();
        await page.route(/\/(api\/|healthz)/, (route) => route.abort());
        for (let seconds = 0; seconds < OUTAGE_S; seconds += 5) await page.clock.runFor(5_000);
        await eventually('it says so', async () => {
          await page.clock.runFor(1_000);
          return notice(page).isVisible();
        });
        const run = await notebook.submit([]);
        await page.unrouteAll();
        await eventually('it shows what happens', async () => {
          await page.clock.runFor(1_000);
          return shown(page).first().getByText('busy').first().isVisible();
        });
        await notice(page).waitFor({ state: 'detached' });
        await client.runs.cancel(run);
        await eventually('it follows', async () => {
          await page.clock.runFor(1_000);
          return shown(page).first().getByText('ready').first().isVisible();
        });
        await page.close();
      },
    );
  }

  await t.test('a view and a chart that could not be loaded can be loaded again', async () => {
    const { page } = await browser.signIn(server, '#/ws_home/people');
    await page.getByRole('heading', { level: 1, name: 'People' }).waitFor();
    await page.route(/\/console\/(charts|audit)-/, (route) => route.abort());
    await page.evaluate("location.hash = '#/ws_home/audit'");
    await page.getByText('This view could not be loaded').waitFor();
    await page.getByRole('button', { name: 'Load the page again' }).waitFor();
    await page.evaluate(`location.hash = '#/ws_home/actors/notebook-session/${notebook.id}'`);
    const problem = page.getByRole('alert').filter({ hasText: 'The server does not answer' });
    await problem.waitFor();
    await page.unrouteAll();
    await problem.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('img', { name: 'The statechart' }).waitFor();
    await page.close();
  });

  await t.test('durations are right on a machine whose clock is wrong', async () => {
    const run = await notebook.submit([]);
    for (const wrongByMs of [-3_600_000, 3_600_000]) {
      const { page } = await browser.signIn(server, `#/ws_home/runs/${run}`, {
        prepare: (opened) => opened.clock.install({ time: Date.now() + wrongByMs }),
      });
      const age = page.locator('.lead time');
      await eventually('it is some seconds', async () =>
        /^[1-9]\d? s$/.test((await age.textContent()) ?? ''),
      );
      await page.close();
    }
    await client.runs.cancel(run);
    await client.waitForRun(run);
  });

  await notebook.close();
});
