/** Jobs in Chromium: the way from a notebook to its schedule and its history. `jobs-in-detail.test.ts` has the rest. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { signInByHand } from './sign-in-by-hand.ts';

const skip = withoutBrowser;
const server = await startServer(test);
const browser = skip === false ? await openBrowser(test) : undefined;
const { jobs, notebookSessions } = server.client;

test('a notebook is scheduled in its page for every Monday at seven, and the history of the job has the run', {
  skip,
}, async () => {
  const notebook = await openNotebook(server, { a: "print('weekly')" }, { title: 'Sales of the week' });
  const { page: home, complaints } = await signInByHand(browser!, server);
  await home.close();
  const { page } = await browser!.openPath(server, `/n/${notebook.id}/`);
  await page.getByRole('button', { name: 'Schedule' }).click();
  const dialog = page.getByRole('dialog', { name: 'Schedule this notebook' });
  await dialog.getByLabel('How often').selectOption('Every week, on chosen days');
  assert.equal(await dialog.getByRole('checkbox', { name: 'Monday' }).isChecked(), true);
  await dialog.getByLabel('At', { exact: true }).fill('07:00');
  await dialog.getByLabel('Time zone').fill('Europe/Berlin');
  const next = dialog.getByRole('status', { name: 'The next times' });
  await next
    .getByText(/^Mon, .* 07:00 (CET|CEST|GMT\+[12])$/)
    .nth(4)
    .waitFor();
  await dialog.getByRole('button', { name: 'Schedule' }).click();
  await dialog.getByRole('status').getByText('Sales of the week').waitFor();
  const { items } = await jobs.list({ notebookId: notebook.id });
  assert.deepEqual(
    items.map(({ name, schedule, timeZone }) => ({ name, schedule, timeZone })),
    [{ name: 'Sales of the week', schedule: { cron: '0 7 * * MON' }, timeZone: 'Europe/Berlin' }],
  );
  await dialog.getByRole('link', { name: 'Its history' }).click();
  await page.getByRole('heading', { name: 'Sales of the week' }).waitFor();
  await page.getByText('Every Monday at 07:00 (Europe/Berlin)').waitFor();
  await page.getByRole('button', { name: 'Run now' }).click();
  const history = page.getByRole('list', { name: 'History' });
  await history.getByText('completed').waitFor();
  const runLink = await history.getByRole('link', { name: 'its run' }).getAttribute('href');
  const [occurrence] = (await jobs.occurrences(items[0]?.id ?? '')).items;
  assert.ok(
    runLink?.endsWith(`/console#/${server.owner.workspaceId}/runs/${occurrence?.runId}`),
    String(runLink),
  );
  await page.getByRole('link', { name: 'All jobs' }).click();
  const row = page.getByRole('list', { name: 'Jobs' }).getByRole('listitem');
  await row.getByText(/next Mon, .* 07:00/).waitFor();
  await row.getByText('completed').waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
  await notebook.close();
  await eventually('the sessions of the test are closed', async () => {
    const { items: open } = await notebookSessions.list({ status: 'open' });
    return open.length === 0;
  });
});
