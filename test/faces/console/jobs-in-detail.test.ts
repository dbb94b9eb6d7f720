// tier: whole, because each test keeps a browser busy; `job-journey.test.ts` has the main journey
/** Jobs in Chromium: choices, mistakes, rights, history, hostile names, and how often the pages ask the server. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { NewJob, Schedule } from '#src/contract/wire/job.ts';
import { NARROW, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { signInByHand } from './sign-in-by-hand.ts';

const skip = withoutBrowser;
const server = await startServer(test);
const browser = skip === false ? await openBrowser(test) : undefined;
const { jobs, notebooks } = server.client;
const { workspaceId } = server.owner;
const { user } = await server.client.me();

/** A schedule that does not fire during a test. */
const YEARLY: Schedule = { cron: '0 7 1 1 *' };
/** The pause between two requests for a shown page. */
const EVERY_MS = 5_000;

async function notebookOf(code: string, title = 'A notebook'): Promise<string> {
  const serialization = { cells: [{ cell_id: 'a', code }] };
  return (await notebooks.create({ title, serialization })).id;
}

async function jobOf(job: Partial<NewJob> = {}, { code = '1', client = server.client } = {}) {
  return client.jobs.create({ target: { notebookId: await notebookOf(code) }, schedule: YEARLY, ...job });
}

/** Opens the page of a job, or of all jobs, as this person. */
async function openJobs(jobId?: string, token?: string) {
  const { page: home } = await signInByHand(browser!, server, token);
  await home.close();
  const rest = jobId === undefined ? '' : `/${jobId}`;
  const opened = await browser!.openPath(server, `/#/${workspaceId}/jobs${rest}`);
  await opened.page.getByRole('heading', { level: 2 }).waitFor();
  return opened;
}

/** Opens the dialog for a notebook from the list of notebooks. */
async function openDialog(page: Page, title: string): Promise<Locator> {
  await page.getByLabel(`Actions on ${title}`).click();
  await page.getByRole('button', { name: 'Schedule' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').waitFor();
  return dialog;
}

const nextTimes = (dialog: Locator) => dialog.getByRole('status', { name: 'The next times' });
const press = (within: Page | Locator, name: string) =>
  within.getByRole('button', { name, exact: true }).click();

test('a run is kept as a page if the dialog says so, and the history has the page as a download', {
  skip,
}, async () => {
  const notebookId = await notebookOf('"the answer is " + str(6 * 7)', 'Kept');
  const { page: list } = await signInByHand(browser!, server);
  const dialog = await openDialog(list, 'Kept');
  await dialog.getByRole('checkbox', { name: 'Keep each run as a page' }).check();
  await press(dialog, 'Schedule');
  const job = await eventually('the job is made', async () => (await jobs.list({ notebookId })).items[0]);
  assert.deepEqual(job.outputs, ['html']);
  await list.close();
  await jobs.run(job.id);
  const { page, complaints } = await openJobs(job.id);
  const [download] = await Promise.all([page.waitForEvent('download'), press(page, 'Download its page')]);
  assert.match(download.suggestedFilename(), /^Kept 20\d\d-\d\d-\d\d\.html$/);
  assert.match(readFileSync(await download.path(), 'utf8'), /the answer is 42/);
  await press(page, 'Edit');
  const edit = page.getByRole('dialog');
  assert.equal(await edit.getByRole('checkbox', { name: 'Keep each run as a page' }).isChecked(), true);
  assert.deepEqual(complaints, []);
  await page.close();
});

test('the file of a kept page has the date in the time zone of the job', { skip }, async () => {
  // At any time, one of these two zones has another date than UTC.
  const utc = new Date().toISOString().slice(0, 10);
  const dateIn = (timeZone: string) => new Date().toLocaleDateString('sv-SE', { timeZone });
  const timeZone = ['Pacific/Kiritimati', 'Pacific/Pago_Pago'].find((zone) => dateIn(zone) !== utc) ?? '';
  const job = await jobOf({ name: 'Dated', timeZone, outputs: ['html'] });
  await jobs.run(job.id);
  const { page } = await openJobs(job.id);
  const [download] = await Promise.all([page.waitForEvent('download'), press(page, 'Download its page')]);
  const [{ dueAt = '' } = {}] = (await jobs.occurrences(job.id)).items;
  const date = new Date(dueAt).toLocaleDateString('sv-SE', { timeZone });
  assert.equal(download.suggestedFilename(), `Dated ${date}.html`);
  await page.close();
});

test('the history says what has started an occurrence, and the page how often in a row it failed', {
  skip,
}, async () => {
  const job = await jobOf({ name: 'Started' }, { code: '1 / 0' });
  const hook = await server.client.hooksIn.create(job.id);
  const headers = { authorization: `Bearer ${hook.secret}` };
  const answer = await fetch(new URL(hook.url, server.baseUrl), { method: 'POST', headers });
  assert.equal(answer.status, 202);
  const { page } = await openJobs(job.id);
  await page.getByText('The last run failed.', { exact: true }).waitFor();
  await page.getByText('Started by another program, at a hook').waitFor();
  await press(page, 'Run now');
  await page.getByText('The last 2 runs in a row failed.', { exact: true }).waitFor();
  await page.getByText(`Started by ${user.id}`).waitFor();
  await page.close();
});

test('each choice of the dialog makes its schedule, and the dialog shows the times of the chosen zone', {
  skip,
}, async () => {
  const notebookId = await notebookOf('1', 'Choices');
  const { page, complaints } = await signInByHand(browser!, server);
  const dialog = await openDialog(page, 'Choices');
  const at = (time: string) => dialog.getByLabel('At', { exact: true }).fill(time);
  const choices: readonly (readonly [
    option: string,
    fill: () => Promise<unknown>,
    schedule: Schedule,
    shown: RegExp,
  ])[] = [
    ['Every day', () => at('06:05'), { cron: '5 6 * * *' }, /, 06:05 (E[SD]T|GMT-[45])$/],
    ['Every weekday, Monday to Friday', () => at('23:59'), { cron: '59 23 * * MON-FRI' }, /^Fri, .* 23:59 /],
    [
      'Every week, on chosen days',
      () => dialog.getByRole('checkbox', { name: 'Saturday' }).check(),
      { cron: '0 7 * * MON,SAT' },
      /^Sat, .* 07:00 /,
    ],
    [
      'Again and again, at an interval',
      () => dialog.getByRole('spinbutton', { name: 'Every' }).fill('90'),
      { everyS: 5400 },
      / 20\d\d, \d\d:\d\d/,
    ],
    [
      'Once',
      () => dialog.getByLabel('Date and time').fill('2091-07-01T08:30'),
      { at: '2091-07-01T12:30:00.000Z' },
      /^Sun, 1 July? 2091, 08:30 (EDT|GMT-4)$/,
    ],
    [
      'By a cron expression',
      () => dialog.getByRole('textbox', { name: 'Cron expression' }).fill('*/30 9-17 * * 1-5'),
      { cron: '*/30 9-17 * * 1-5' },
      /:[03]0 (E[SD]T|GMT-[45])$/,
    ],
  ];
  for (const [option, fill, schedule, shown] of choices) {
    await dialog.getByLabel('How often').selectOption(option);
    await dialog.getByLabel('Time zone').fill('America/New_York');
    await fill();
    await nextTimes(dialog).getByText(shown).first().waitFor();
    await press(dialog, 'Schedule');
    await press(dialog, 'Another schedule');
    const [made] = (await jobs.list({ notebookId, order: 'desc' })).items;
    assert.deepEqual(made?.schedule, schedule, option);
    assert.deepEqual([made?.timeZone, made?.name], ['America/New_York', 'Choices']);
  }
  assert.deepEqual(complaints, []);
  await page.close();
});

test('the time zone of a new job is that of the browser', { skip }, async () => {
  await notebookOf('1', 'Zones');
  const { page } = await signInByHand(browser!, server);
  const zone = await page.evaluate<string>('Intl.DateTimeFormat().resolvedOptions().timeZone');
  const dialog = await openDialog(page, 'Zones');
  assert.equal(await dialog.getByLabel('Time zone').inputValue(), zone);
  await page.close();
});

test('typing asks for the next times once after a pause, and a late answer for an earlier text is not shown', {
  skip,
}, async () => {
  await notebookOf('1', 'Typed');
  const { page } = await signInByHand(browser!, server);
  await page.clock.install();
  const dialog = await openDialog(page, 'Typed');
  await dialog.getByLabel('How often').selectOption('By a cron expression');
  const field = dialog.getByRole('textbox', { name: 'Cron expression' });
  const asked: string[] = [];
  page.on('request', (request) => {
    if (!request.url().endsWith('/jobs/preview')) return;
    const { schedule } = request.postDataJSON() as { readonly schedule: { readonly cron: string } };
    asked.push(schedule.cron);
  });
  await page.evaluate(HOLD_FIRST_ANSWER);
  await field.fill('');
  await nextTimes(dialog).getByText('Enter a cron expression.').waitFor();
  await field.pressSequentially('0 1 1 1 *');
  assert.deepEqual(asked, []);
  await eventually('the page asks', async () => {
    await page.clock.runFor(100);
    return page.evaluate<boolean>('late.response !== undefined');
  });
  await field.fill('0 2 1 1 *');
  await eventually('the page shows the later times', async () => {
    await page.clock.runFor(100);
    return nextTimes(dialog).getByText(', 02:00').first().isVisible();
  });
  await page.evaluate('late.release()');
  await eventually('the page has read the late answer', () => page.evaluate('late.response.bodyUsed'));
  await field.fill('0 3 1 1 *');
  await eventually('the page shows the last times', async () => {
    await page.clock.runFor(100);
    return nextTimes(dialog).getByText(', 03:00').first().isVisible();
  });
  const shown = (await page.evaluate<string[]>('late.shown')).join('\n');
  assert.match(shown, /, 02:00/);
  assert.doesNotMatch(shown, /, 01:00/);
  assert.deepEqual(asked, ['0 1 1 1 *', '0 2 1 1 *', '0 3 1 1 *']);
  await page.close();
});

/**
 * In the page: the first answer with the next times is kept until `late.release()`, also when the page no longer waits for it, as an
 * answer that arrives in the moment in which its request is given up. `late.shown` has each text of the next times since then.
 */
const HOLD_FIRST_ANSWER = `{
  const send = window.fetch;
  window.late = { response: undefined, shown: [] };
  window.fetch = async (url, init) => {
    if (!String(url).endsWith('/jobs/preview') || late.response !== undefined) return send(url, init);
    const answer = await send(url, { ...init, signal: undefined });
    late.response = new Response(await answer.text(), answer);
    await new Promise((resolve) => (late.release = resolve));
    return late.response;
  };
  const place = document.querySelector('dialog .next');
  new MutationObserver(() => late.shown.push(place.textContent)).observe(place, { childList: true, subtree: true, characterData: true });
}`;

test('a mistake is shown at its field, and nothing is saved', { skip }, async () => {
  const notebookId = await notebookOf('1', 'Mistakes');
  const { page, complaints } = await signInByHand(browser!, server);
  const dialog = await openDialog(page, 'Mistakes');
  const wrong = async (field: Locator, sentence: RegExp) => {
    await dialog.getByRole('alert').getByText(sentence).waitFor();
    assert.equal(await field.getAttribute('aria-invalid'), 'true');
    const ids = (await field.getAttribute('aria-describedby'))?.split(' ') ?? [];
    const texts = await page.evaluate<string[]>(
      `${JSON.stringify(ids)}.map((id) => document.getElementById(id)?.textContent ?? '')`,
    );
    assert.match(texts.join(' '), sentence);
  };
  const zone = dialog.getByLabel('Time zone');
  const own = await zone.inputValue();
  await zone.fill('Mars/Olympus');
  await wrong(zone, /There is no time zone with the name Mars\/Olympus/);
  await zone.fill(own);
  await dialog.getByLabel('How often').selectOption('By a cron expression');
  const cron = dialog.getByRole('textbox', { name: 'Cron expression' });
  await cron.fill('0 7 * *');
  await wrong(cron, /has 4 fields/);
  await dialog.getByLabel('How often').selectOption('Once');
  const once = dialog.getByLabel('Date and time');
  await once.fill('2001-01-01T07:00');
  await wrong(once, /no instant in the future/);
  await press(dialog, 'Schedule');
  await dialog.getByRole('alert').getByText('invalid_request').waitFor();
  assert.deepEqual((await jobs.list({ notebookId })).items, []);
  assert.deepEqual(complaints, []);
  await page.close();
});

test('a job is edited, and a change of somebody else in the meantime is not overwritten', {
  skip,
}, async () => {
  const kept = {
    schedule: { everyS: 90 },
    timeoutS: 90,
    arguments: ['--a=1\n2'],
    catchUp: 'all',
    overlap: 'queue',
    retries: 7,
    retryOn: 'all',
  } as const;
  const job = await jobOf({ name: 'Before', ...kept });
  const { page, complaints } = await openJobs(job.id);
  await press(page, 'Edit');
  const dialog = page.getByRole('dialog', { name: 'Edit the job' });
  await dialog.getByLabel('Name').fill('After');
  await press(dialog, 'Save');
  await page.getByRole('heading', { name: 'After' }).waitFor();
  await dialog.waitFor({ state: 'detached' });
  assert.equal(await page.evaluate<string>('document.activeElement.textContent'), 'Edit');
  const saved = await jobs.get(job.id);
  assert.deepEqual({ ...saved, ...kept, name: 'After' }, saved, 'the other members stay');
  const sinceMs = saved.next.map((at) => Date.parse(at) - Date.parse(job.createdAt));
  assert.ok(
    sinceMs.every((ms) => ms % 90_000 === 0),
    'the interval is still counted from the creation',
  );
  await press(page, 'Edit');
  await dialog.getByLabel('How often').selectOption('Every day');
  const { updatedAt: expectedUpdatedAt } = await jobs.get(job.id);
  await jobs.update(job.id, { expectedUpdatedAt, name: 'Of somebody else' });
  await press(dialog, 'Save');
  await dialog.getByRole('alert').getByText('stale_update').waitFor();
  const after = await jobs.get(job.id);
  assert.deepEqual([after.name, after.schedule], ['Of somebody else', { everyS: 90 }]);
  assert.deepEqual(complaints, []);
  await page.close();
});

test('the dialog sets the deadline, late and overlapping times, attempts and parameters', {
  skip,
}, async () => {
  const notebookId = await notebookOf('1', 'With all choices');
  const { page, complaints } = await signInByHand(browser!, server);
  const dialog = await openDialog(page, 'With all choices');
  await dialog.getByLabel('Stop a run that takes longer').fill('2.5');
  await dialog
    .getByLabel('If the server was not running')
    .selectOption('skip it, and wait for the next time');
  await dialog.getByLabel('If the run before').selectOption('cancel that run, and run at once');
  const attempts = dialog.getByLabel('Further attempts after a failure');
  await dialog.getByText('Advanced').click();
  await attempts.fill('11');
  await dialog.getByText('Advanced').click();
  await press(dialog, 'Schedule');
  await attempts.waitFor(); // the browser shows its message at the field, which was hidden
  assert.deepEqual((await jobs.list({ notebookId })).items, []);
  await attempts.fill('0');
  await dialog.getByLabel('Failures with further attempts').selectOption('all, also errors in cells');
  await dialog.getByLabel('Parameters').fill('--month=3\n\n --region=north ');
  await press(dialog, 'Schedule');
  await dialog.getByRole('link', { name: 'Its history' }).waitFor();
  const [made] = (await jobs.list({ notebookId })).items;
  const chosen = {
    timeoutS: 150,
    catchUp: 'none',
    overlap: 'cancel',
    retries: 0,
    retryOn: 'all',
    arguments: ['--month=3', '--region=north'],
  };
  assert.deepEqual({ ...made, ...chosen }, made);
  assert.deepEqual(complaints, []);
  await page.close();
});

test('a job that has paused itself says why in the list and on its page, and waits again once it is resumed', {
  skip,
}, async () => {
  const job = await jobOf({ name: 'Failing' }, { code: '1 / 0' });
  for (let i = 0; i < 5; i++) {
    const { id } = await jobs.run(job.id);
    await eventually(
      'the occurrence is over',
      async () => (await jobs.get(job.id)).lastOccurrence?.id === id,
    );
  }
  const { page, complaints } = await openJobs();
  const row = page.getByRole('list', { name: 'Jobs' }).getByRole('listitem').filter({ hasText: 'Failing' });
  await row.getByText(/5 occurrences in a row have failed.*ZeroDivisionError/).waitFor();
  await row.getByRole('link', { name: 'Failing' }).click();
  await page
    .getByText(
      /5 occurrences in a row have failed.*ZeroDivisionError.* Resume the job once the cause is removed\./,
    )
    .waitFor();
  await page.getByRole('link', { name: 'All jobs' }).click();
  await press(row, 'Resume');
  await row.getByText('waiting').waitFor();
  assert.equal((await jobs.get(job.id)).status, 'waiting');
  assert.deepEqual(complaints, []);
  await page.close();
});

test('a viewer sees a job and its history but cannot change it, and the page says why', {
  skip,
}, async () => {
  const job = await jobOf({ name: 'Looked at' });
  const { id } = await jobs.run(job.id);
  await eventually('the occurrence is over', async () => (await jobs.get(job.id)).lastOccurrence?.id === id);
  const viewer = await addMember(server, 'vera', 'viewer');
  const { page, complaints } = await openJobs(job.id, viewer.token);
  await page.getByRole('list', { name: 'History' }).getByText('completed').waitFor();
  const sent: string[] = [];
  page.on('request', (request) => sent.push(request.method()));
  for (const name of ['Run now', 'Pause', 'Edit', 'Delete']) {
    const button = page.getByRole('button', { name, exact: true });
    assert.equal(await button.getAttribute('aria-disabled'), 'true', name);
    const whyId = await button.getAttribute('aria-describedby');
    assert.match((await page.locator(`[id="${whyId}"]`).textContent()) ?? '', /You are a viewer/, name);
    await button.click({ force: true });
  }
  await page.reload();
  await page.getByRole('list', { name: 'History' }).getByText('completed').waitFor();
  assert.deepEqual([...new Set(sent)], ['GET']);
  assert.equal(await page.getByRole('dialog').count(), 0);
  assert.deepEqual(complaints, []);
  await page.close();
  const notebook = await openNotebook(server, { a: '1' }, { title: 'For viewers' });
  const { page: notebookPage } = await browser!.openPath(server, `/n/${notebook.id}/`);
  await press(notebookPage, 'Schedule');
  await notebookPage.getByText('You are a viewer of this workspace').waitFor();
  assert.equal(await notebookPage.getByLabel('How often').count(), 0);
  await notebookPage.close();
  await notebook.close();
});

test('an editor cannot change the job of another member, and an owner of the workspace takes it over', {
  skip,
}, async () => {
  const [ada, bob] = [await addMember(server, 'ada', 'editor'), await addMember(server, 'bob', 'editor')];
  const job = await jobOf({ name: 'Of Ada' }, { client: ada.client });
  const { page } = await openJobs(job.id, bob.token);
  await page.getByText(/The job belongs to \W?ada\W?\. Only this member and owners/).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Take over' }).count(), 0);
  await page.close();
  const { page: own, complaints } = await openJobs(job.id, ada.token);
  await press(own, 'Pause');
  await own.getByText('Paused by a person').waitFor();
  await own.close();
  const { page: owners } = await openJobs(job.id);
  await press(owners, 'Take over');
  await owners.getByText('The job then works with your rights').waitFor();
  assert.equal((await jobs.get(job.id)).ownerId, 'ada');
  await press(owners, 'Take over');
  await owners.getByText(`with the rights of ${user.id}`).waitFor();
  assert.deepEqual(complaints, []);
  await owners.close();
});

test('a job is deleted by the keyboard after a question, and the focus is never lost', { skip }, async () => {
  const job = await jobOf({ name: 'To be deleted' });
  const { page, complaints } = await openJobs();
  const focused = () => page.evaluate<string>('document.activeElement.textContent');
  assert.equal(await focused(), 'Jobs');
  await page.getByRole('link', { name: 'To be deleted' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'To be deleted' }).waitFor();
  await eventually('the heading has the focus', async () => (await focused()) === 'To be deleted');
  await page.getByRole('button', { name: 'Edit' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByLabel('Name').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal(await focused(), 'Edit');
  await page.getByRole('button', { name: 'Delete' }).focus();
  await page.keyboard.press('Enter');
  await page.getByText('is deleted with its history').waitFor();
  assert.equal(await focused(), 'No', 'a second Enter deletes nothing');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  await eventually('the heading has the focus', async () => (await focused()) === 'Jobs');
  assert.ok((await jobs.list()).items.every(({ id }) => id !== job.id));
  assert.deepEqual(complaints, []);
  await page.close();
});

test('the history has pages, newest first, and a skipped time says why', { skip }, async () => {
  const job = await jobOf({ name: 'Long history', paused: true });
  assert.ok('notebookId' in job.target);
  await notebooks.delete(job.target.notebookId);
  // A job whose notebook was deleted skips each time at once.
  for (let i = 0; i < 51; i++) await jobs.run(job.id);
  const { items } = await jobs.occurrences(job.id, { order: 'desc', limit: 100 });
  const { page, complaints } = await openJobs(job.id);
  const rows = page.getByRole('list', { name: 'History' }).getByRole('listitem');
  await rows.nth(49).waitFor();
  assert.equal(await rows.count(), 50);
  const shown = () =>
    rows.locator('time').evaluateAll((all) => all.map((one) => one.getAttribute('datetime')));
  assert.deepEqual(
    await shown(),
    items.slice(0, 50).map(({ dueAt }) => dueAt),
  );
  await rows.first().getByText('skipped').waitFor();
  await rows
    .first()
    .getByText(/The notebook nb_\w+ was deleted/)
    .waitFor();
  await press(page, 'Older');
  await eventually('the older page has one row', async () => (await shown()).join() === items[50]?.dueAt);
  assert.equal(await page.evaluate<string>('document.activeElement.textContent'), 'Older');
  await press(page, 'Newer');
  await rows.nth(49).waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
});

test('a shown job is loaded again every five seconds by two requests, and a hidden page requests nothing', {
  skip,
}, async () => {
  const job = await jobOf({ name: 'Followed' });
  const { page: home } = await signInByHand(browser!, server);
  await home.close();
  const prepare = (opened: Page) => opened.clock.install();
  const { page, complaints } = await browser!.openPath(server, `/#/${workspaceId}/jobs/${job.id}`, {
    prepare,
  });
  await page.getByText('The job has not run yet').waitFor();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  const both = [`/api/v3/jobs/${job.id}`, `/api/v3/jobs/${job.id}/occurrences`];
  await page.clock.runFor(EVERY_MS);
  await eventually('the page asks', () => asked.length >= 2);
  assert.deepEqual(asked.toSorted(), both);
  const { id } = await jobs.run(job.id);
  await eventually('the occurrence is over', async () => (await jobs.get(job.id)).lastOccurrence?.id === id);
  await eventually('the page shows it', async () => {
    await page.clock.runFor(EVERY_MS);
    return page.getByRole('list', { name: 'History' }).getByText('completed').isVisible();
  });
  await see(page, 'hidden');
  asked.length = 0;
  await page.clock.runFor(10 * EVERY_MS);
  assert.deepEqual(asked, []);
  await see(page, 'visible');
  await eventually('the page asks again', () => asked.length >= 2);
  assert.deepEqual(complaints, []);
  await page.close();
});

test('hostile and very long names stay texts and within the screen of a phone', { skip }, async () => {
  const names = [
    '<img src=x onerror="document.title=1">',
    'x'.repeat(200),
    '\u202e\u202egnp.exe \u05d0\u05d1\u05d2 <script>document.title=1</script>',
  ];
  for (const name of names) {
    const job = await jobOf({ name, arguments: ['<b>'] });
    const { page, complaints } = await openJobs(job.id);
    await page.setViewportSize(NARROW);
    await page.getByRole('heading', { level: 2 }).waitFor();
    assert.equal(await page.getByRole('heading', { level: 2 }).textContent(), name);
    await press(page, 'Delete');
    await page.getByText('is deleted with its history').waitFor();
    await fits(page, 'html');
    await press(page, 'No');
    await press(page, 'Edit');
    assert.equal(await page.getByRole('dialog').getByLabel('Name').inputValue(), name);
    await page.getByText('Advanced').click();
    await fits(page, 'dialog');
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'All jobs' }).click();
    await page.getByRole('list', { name: 'Jobs' }).getByText(name, { exact: true }).waitFor();
    await fits(page, 'html');
    assert.equal(await page.locator('main img, main script, main b').count(), 0);
    assert.deepEqual(complaints, []);
    await page.close();
  }
});

test('the list of notebooks loads the code of jobs only once it is shown', { skip }, async () => {
  const { page } = await signInByHand(browser!, server);
  await page.getByRole('region', { name: 'Notebooks' }).getByRole('listitem').first().waitFor();
  const files: string[] = [];
  page.on('request', (request) => files.push(new URL(request.url()).pathname));
  await page.getByRole('link', { name: 'Jobs' }).click();
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  assert.ok(
    files.some((path) => path.includes('/jobs-page-')),
    files.join(),
  );
  await page.close();
});

test('a person with the page of a notebook who has not signed in is asked to, and keeps the page', {
  skip,
}, async () => {
  const notebook = await openNotebook(server, { a: '1' }, { title: 'By a link' });
  await browser!.context.clearCookies();
  const { url } = await server.client.notebookSessions.page(notebook.id);
  const { page } = await browser!.openPath(server, url);
  await press(page, 'Schedule');
  const link = page.getByRole('dialog').getByRole('link', { name: 'Sign in' });
  assert.ok(
    (await link.getAttribute('href'))?.endsWith(`/sign-in?to=${encodeURIComponent(`/n/${notebook.id}/`)}`),
  );
  await press(page.getByRole('dialog'), 'Close');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.close();
  await notebook.close();
});

test('a link to a job that is not there, or to the jobs of a workspace of others, says so', {
  skip,
}, async () => {
  const { page } = await signInByHand(browser!, server);
  await page.goto(`${server.baseUrl}/#/${workspaceId}/jobs/job_01j0000000000000000000`);
  await page.getByText('There is no such job in this workspace').waitFor();
  await page.goto(`${server.baseUrl}/#/ws_of_others/jobs`);
  await page.getByText('You are not a member of this workspace').waitFor();
  await page.close();
});

/** Checks that nothing in the element is wider than the element. */
async function fits(page: Page, selector: string): Promise<void> {
  const [width, wanted] = await page.evaluate<[number, number]>(
    `(({ clientWidth, scrollWidth }) => [clientWidth, scrollWidth])(document.querySelector('${selector}'))`,
  );
  assert.equal(wanted, width, selector);
}

async function see(page: Page, visibility: 'hidden' | 'visible'): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'visibilityState', { value: '${visibility}', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  `);
}
