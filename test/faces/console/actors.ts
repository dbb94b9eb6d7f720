import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import type { Stage } from './stage.ts';

export async function actors(t: TestContext, { server, browser }: Stage): Promise<void> {
  const notebook = await openNotebook(server, { loop: 'while True: pass' }, { title: 'Busy <b>one</b>' });
  const { page, complaints } = await browser.signIn(server);

  await t.test('an actor that moves is shown in its new state without a reload', async () => {
    await page.getByRole('link', { name: 'Actors' }).click();
    const row = page
      .getByRole('row')
      .filter({ hasText: notebook.id })
      .filter({ hasText: 'notebook-session' });
    await row.getByText('live.ready').waitFor();
    const runId = await notebook.submit([]);
    await row.getByText('live.busy.running').waitFor();
    await page.getByRole('link', { name: runId }).first().waitFor();
  });

  await t.test('an operator finds the reason why an execution was refused', async () => {
    assert.equal(await refusalOf(notebook.submit([])), '409 session_busy');
    await page
      .getByRole('table')
      .getByRole('link', { name: `notebook-session ${notebook.id}` })
      .first()
      .click();
    await page.getByRole('heading', { level: 1, name: notebook.id }).waitFor();
    const refused = page.getByRole('listitem').filter({ hasText: 'refused with session_busy' });
    await refused.getByText('Wait until the session is ready again, or cancel its run.').waitFor();
    await page.getByRole('img', { name: 'the present state is live.busy.running' }).waitFor();
    assert.equal(await page.locator('.chart .state.inner text').textContent(), 'running');
    assert.equal(await page.locator('.chart .state.refusing text').textContent(), 'running');
    assert.equal(await page.locator('.chart .transition.last text').textContent(), 'execute');
  });

  await t.test('a state of the chart lists the events that it takes and refuses', async () => {
    await page.locator('.chart .state', { hasText: 'ready' }).first().click();
    await page.getByText('execute is refused with session_not_editable').waitFor();
  });

  await t.test('filters are in the link, and a link opens the same list', async () => {
    await page.getByRole('link', { name: 'Actors' }).click();
    await page.getByLabel('Kind').selectOption('run');
    await page.waitForURL(/actors\?kind=run$/);
    await page.getByRole('row').filter({ hasText: notebook.environmentId }).waitFor({ state: 'detached' });
    await page.getByLabel('State').selectOption('running.active');
    await page.waitForURL(/actors\?kind=run&state=running\.active$/);
    const { page: second } = await browser.signIn(server, new URL(page.url()).hash);
    await second.getByRole('link', { name: /^run run_/ }).waitFor();
    assert.equal(await second.getByRole('row').count(), 2);
    await second.close();
  });

  await t.test(
    'the search of the top bar finds an actor by a part of its id, even an ended actor',
    async () => {
      await page.keyboard.press('g');
      await page.keyboard.press('o');
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      await page.keyboard.press('/');
      await page.keyboard.type(notebook.id.slice(-9));
      await page.keyboard.press('Enter');
      await page
        .getByRole('link', { name: `notebook-session ${notebook.id}` })
        .first()
        .waitFor();
    },
  );

  await t.test(
    'the page of a missing actor says that the actor does not exist, and gives advice',
    async () => {
      await page.goto(`${server.baseUrl}/console#/ws_home/actors/run/run_none`);
      await page.getByRole('alert').getByText('The resource may have been deleted').waitFor();
    },
  );

  assert.deepEqual(complaints, []);
  await Promise.all([notebook.close(), page.close()]);
}
