// tier: whole, because it keeps a browser busy; `job-journey.test.ts` has the main journey
/** Hooks on the page of a job, in Chromium. A person makes one, and it tells another server of a failure. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Page } from 'playwright-core';
import { NARROW, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { addMember } from '#test/support/members.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { hookReceiver } from '#test/support/stand-ins/hook-receiver.ts';
import { signInByHand } from './sign-in-by-hand.ts';

const skip = withoutBrowser;
const server = await startServer(test);
const browser = skip === false ? await openBrowser(test) : undefined;
const { hooks, jobs, notebooks } = server.client;
const { workspaceId } = server.owner;

async function jobOf(code: string, name: string) {
  const serialization = { cells: [{ cell_id: 'a', code }] };
  const { id: notebookId } = await notebooks.create({ title: name, serialization });
  return jobs.create({ target: { notebookId }, schedule: { cron: '0 7 1 1 *' }, name });
}

/** Opens the page of a job as this person. */
async function openJob(jobId: string, token?: string): Promise<{ page: Page; complaints: string[] }> {
  const { page: home } = await signInByHand(browser!, server, token);
  await home.close();
  const opened = await browser!.openPath(server, `/#/${workspaceId}/jobs/${jobId}`);
  await opened.page.getByRole('heading', { name: 'Who is told' }).waitFor();
  return opened;
}

test('a person has another server told of a failing job, tests it, and pauses and deletes the hook', {
  skip,
}, async (t) => {
  const receiver = await hookReceiver(t);
  const job = await jobOf('1 / 0', 'Failing');
  const other = await jobOf('1', 'Another');
  const elsewhere = { url: receiver.url, events: ['job.failed' as const], filter: { jobId: other.id } };
  await hooks.create({ ...elsewhere, name: 'Of another job' });
  const { page, complaints } = await openJob(job.id);
  await page.getByText('Nobody is told when this job fails or is paused.').waitFor();
  await page.getByRole('button', { name: 'Tell another server' }).click();
  const dialog = page.getByRole('dialog', { name: 'Tell another server' });
  await dialog.getByLabel('Address').fill(receiver.url.replace('http://', 'http://ada:secret@'));
  await dialog.getByLabel('Name').fill('On-call');
  await dialog.getByRole('button', { name: 'Tell it' }).click();
  await dialog.getByRole('alert').getByText('must not contain a user or a password').waitFor();
  await dialog.getByLabel('Address').fill(receiver.url);
  await dialog.getByRole('button', { name: 'Tell it' }).click();
  const secret = await dialog.getByLabel('Secret, which is shown only now').inputValue();
  const focused = 'document.activeElement.value';
  assert.equal(await page.evaluate<string>(focused), secret, 'the secret has the focus');
  await dialog.getByRole('button', { name: 'I have the secret' }).click();
  await dialog.waitFor({ state: 'detached' });
  assert.equal(await page.evaluate<string>('document.activeElement.textContent'), 'Tell another server');
  const row = page.getByRole('list', { name: 'Who is told' }).getByRole('listitem');
  await row.getByText('On-call').waitFor();
  await row
    .getByText(/Told of this job when a run failed and is not tried again; the job was paused/)
    .waitFor();
  assert.equal(await row.count(), 1, 'the hook of another job is not shown');
  await row.getByRole('button', { name: 'Send a test' }).click();
  await row.getByText('The test has arrived: the server answered 204.').waitFor();
  receiver.received[0]?.verify(secret);
  await page.getByRole('button', { name: 'Run now' }).click();
  await eventually('the failure has arrived', () =>
    receiver.received.some(({ payload }) => payload.type === 'job.failed' && payload.data.jobId === job.id),
  );
  await row.getByRole('button', { name: 'Pause' }).click();
  await row.getByText('Paused by a person. It is told of nothing until it is resumed.').waitFor();
  assert.equal(await row.getByRole('button', { name: 'Send a test' }).count(), 0);
  await row.getByRole('button', { name: 'Resume' }).click();
  await row.getByText('ready').waitFor();
  await row.getByRole('button', { name: 'Delete' }).click();
  await row.getByRole('group').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('Nobody is told when this job fails or is paused.').waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
});

test('a test that has not arrived says why, and a hook that nobody asks for anything is not made', {
  skip,
}, async (t) => {
  const receiver = await hookReceiver(t);
  receiver.answer((response) => response.writeHead(500).end());
  const job = await jobOf('1', 'Untold');
  const filter = { jobId: job.id };
  const hook = await hooks.create({ url: receiver.url, events: ['job.failed'], filter });
  const { page, complaints } = await openJob(job.id);
  await page.getByRole('button', { name: 'Send a test' }).click();
  await page
    .getByText(
      'The test has not arrived. The receiver answered with the status 500. It is sent again later.',
      { exact: true },
    )
    .waitFor();
  await page.getByText('tries again soon').waitFor();
  await page.getByRole('button', { name: 'Tell another server' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Address').fill(receiver.url);
  for (const name of ['a run failed', 'the job was paused'])
    await dialog.getByRole('checkbox', { name }).uncheck();
  await dialog.getByRole('button', { name: 'Tell it' }).click();
  await dialog.getByRole('alert').getByText('Choose at least one event.').waitFor();
  assert.deepEqual(
    (await hooks.list()).items.filter(({ filter: { jobId } }) => jobId === job.id).map(({ id }) => id),
    [hook.id],
  );
  assert.deepEqual(complaints, []);
  await page.close();
});

test('members who may not change a hook see it and why not, and the page fits the screen of a phone', {
  skip,
}, async () => {
  const url = `https://receiver.example/${'very-long-'.repeat(20)}`;
  const job = await jobOf('1', 'Of the owner');
  await hooks.create({ url, events: ['job.failed'], filter: { jobId: job.id } });
  const ada = await addMember(server, 'ada', 'editor');
  const { page } = await openJob(job.id, ada.token);
  await page.setViewportSize(NARROW);
  const remove = page.getByRole('list', { name: 'Who is told' }).getByRole('button', { name: 'Delete' });
  assert.equal(await remove.getAttribute('aria-disabled'), 'true');
  const why = await remove.getAttribute('aria-describedby');
  assert.match((await page.locator(`[id="${why}"]`).textContent()) ?? '', /Only this member and owners/);
  const width = await page.evaluate<number>('document.documentElement.scrollWidth');
  assert.ok(width <= NARROW.width, `the page is ${width} wide`);
  await page.close();
  const bob = await addMember(server, 'bob', 'viewer');
  const { page: viewed } = await openJob(job.id, bob.token);
  await viewed.getByText('Editors and owners can have others told.').waitFor();
  assert.equal(await viewed.getByRole('button', { name: 'Tell another server' }).count(), 0);
  await viewed.close();
});
