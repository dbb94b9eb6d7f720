// tier: whole, because it needs Firefox
/** Jobs, as Firefox shows them: the dialog for a schedule, and the history. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openFirefox, withoutFirefox } from '#test/support/firefox.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { jobs, notebooks } = server.client;

test('in Firefox a notebook is scheduled for every Monday at seven, runs now, and the history has the run', {
  skip: withoutFirefox,
}, async (t) => {
  const firefox = await openFirefox(t);
  const serialization = { cells: [{ cell_id: 'a', code: "print('weekly')" }] };
  const { id: notebookId } = await notebooks.create({ title: 'Sales', serialization });
  const { page, complaints } = await firefox.open(server, '/');
  await page.locator('input[name=token]').fill(OWNER.token);
  await page.locator('::-p-aria([name="Sign in"][role="button"])').click();
  await page.locator('summary[aria-label="Actions on Sales"]').click();
  await page.locator('::-p-aria([name="Schedule"][role="button"])').click();
  await page.locator('dialog[open] select').fill('weekly');
  await page.locator('dialog input[list]').fill('Europe/Berlin');
  await page.locator('dialog input[type=time]').fill('07:00');
  await page.waitForFunction(
    `(() => {
      const times = [...document.querySelectorAll('dialog .next time')].map((time) => time.textContent);
      return times.length === 5 && times.every((text) => text.startsWith('Mon, ') && text.includes(' 07:00 '));
    })()`,
  );
  await page.locator('dialog button.primary').click();
  await page.locator('dialog .notice ::-p-text(Its history)').click();
  await page.locator('h2 ::-p-text(Sales)').wait();
  const [job] = (await jobs.list({ notebookId })).items;
  assert.deepEqual([job?.schedule, job?.timeZone], [{ cron: '0 7 * * MON' }, 'Europe/Berlin']);
  await page.locator('::-p-aria([name="Run now"][role="button"])').click();
  await page.locator('.history ::-p-text(completed)').wait();
  await page.locator('::-p-aria([name="Edit"][role="button"])').click();
  await page.locator('dialog input[name=name]').fill('Sales of the week');
  await page.locator('dialog button.primary').click();
  await page.locator('h2 ::-p-text(Sales of the week)').wait();
  await eventually('the dialog is closed', () => page.evaluate("document.querySelector('dialog') === null"));
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Edit');
  assert.deepEqual(await complaints(), []);
});
