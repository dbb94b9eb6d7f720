// tier: whole, because each test keeps a browser busy, and one file of this kind is in `npm test`
/** Links to public files in Chromium, and pictures whose credential has expired. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test, { type TestContext } from 'node:test';
import { cellOf, openBrowser, outputOf, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { putPublicFiles } from '#test/support/public-files.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client, baseUrl } = server;

await putPublicFiles(server);

const hrefOf = (element: unknown) => Object(element).href as string;
const srcOf = (element: unknown) => Object(element).src as string;
const widthOf = (element: unknown) => Object(element).naturalWidth as number;

/** Opens a notebook with this HTML as an output in a browser, and runs it. */
async function show(t: TestContext, html: string) {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, {
    imports: 'import marimo as mo',
    out: `mo.Html('''${html}''')`,
  });
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await cellOf(page, 'out').waitFor();
  assert.equal((await notebook.run({ type: 'all' })).status, 'completed');
  const output = outputOf(page, 'out');
  await output.locator('#first').waitFor();
  const frame = page.frames().find((one) => one.url().endsWith('/page/'));
  assert.ok(frame !== undefined);
  return { browser, notebook, page, frame, output };
}

test('in a browser, links to public files have no credential, open beside the notebook, and are downloaded', {
  skip: withoutBrowser,
}, async (t) => {
  const links = [
    '<a id="first" href="public/dot.png">plain</a>',
    '<a id="blank" href="/public/in%20a%20folder/dot.png" target="_blank">blank</a>',
    '<a id="download" href="./public/data.csv" download="table.csv">download</a>',
  ];
  const { browser, notebook, page, frame, output } = await show(t, links.join(' '));
  for (const [id, path] of [
    ['first', 'dot.png'],
    ['blank', 'in%20a%20folder/dot.png'],
  ] as const) {
    const link = output.locator(`#${id}`);
    const whole = `${baseUrl}/n/${notebook.id}/page/public/${path}`;
    await eventually('the link is whole', async () => (await link.evaluate(hrefOf)) === whole);
    const answered = browser.context.waitForEvent('response', (response) => response.url() === whole);
    const [opened] = await Promise.all([browser.context.waitForEvent('page'), link.click()]);
    assert.equal((await answered).status(), 200, id);
    await opened.waitForURL(whole);
    await opened.close();
  }
  const [download] = await Promise.all([page.waitForEvent('download'), output.locator('#download').click()]);
  assert.equal(download.suggestedFilename(), 'table.csv');
  assert.equal(readFileSync((await download.path()) ?? '', 'utf8'), 'x,y\n1,2\n');
  assert.ok(!frame.isDetached() && frame.url().endsWith('/page/'), 'the notebook stays');
  await notebook.close();
});

test('in a browser, pictures that appear or fail after the credential has expired get a new credential', {
  skip: withoutBrowser,
}, async (t) => {
  const { notebook, page, frame, output } = await show(t, '<img id="first" src="public/dot.png">');
  const picture = (id: string) => output.locator(`#${id}`);
  const codeOfPicture = async (id: string) => (await picture(id).evaluate(srcOf)).split('/').at(-2);
  const isDrawn = (id: string) =>
    eventually(`the picture ${id} is drawn`, async () => (await picture(id).evaluate(widthOf)) > 0);
  await isDrawn('first');
  const first = await codeOfPicture('first');
  // The clock of the page is ahead of that of the server, so the credential counts as old.
  await frame.evaluate(
    '{ const now = Date.now; window.aheadMs = 200000; Date.now = () => now() + window.aheadMs; }',
  );
  const added = '<img id="second" src="public/dot.png">';
  await picture('first').evaluate(
    (element, html) => Object(element).insertAdjacentHTML('afterend', html),
    added,
  );
  await isDrawn('second');
  const second = await codeOfPicture('second');
  assert.notEqual(second, first);
  let failed = 0;
  await page.route(`**/public/${second}/dot.png?late`, (route) => {
    failed++;
    return route.fulfill({ status: 401 });
  });
  await frame.evaluate('window.aheadMs = 600000');
  const late = `${baseUrl}/n/${notebook.id}/public/${second}/dot.png?late`;
  await picture('first').evaluate((element, src) => Object(element).setAttribute('src', src), late);
  await eventually(
    'the picture has another credential',
    async () => (await codeOfPicture('first')) !== second,
  );
  await isDrawn('first');
  assert.equal(failed, 1);
  await notebook.close();
});

/** Returns a sound file with this many seconds of silence. */
function silence(seconds: number): Buffer {
  const rate = 44_100;
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + 2 * rate * seconds, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(2 * rate, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(2 * rate * seconds, 40);
  return Buffer.concat([header, Buffer.alloc(2 * rate * seconds)]);
}

test('in a browser, a recording continues at the same place if its credential expires before it is completely loaded', {
  skip: withoutBrowser,
}, async (t) => {
  await client.files.put('public/long.wav', silence(120));
  const html =
    '<audio id="first" src="public/long.wav" preload="metadata" controls></audio>' +
    '<audio id="second" preload="metadata" controls><source src="public/long.wav"></audio>';
  const { notebook, page, frame, output } = await show(t, html);
  const player = (id: string) => output.locator(`#${id}`);
  const addressOf = (id: string) => player(id).evaluate((element) => String(Object(element).currentSrc));
  for (const id of ['first', 'second'])
    await eventually(`the length of ${id} is known`, async () =>
      player(id).evaluate((element) => Object(element).duration === 120),
    );
  const before = await addressOf('first');
  await page.route(before, (route) => route.fulfill({ status: 401 }));
  await frame.evaluate('{ const now = Date.now; Date.now = () => now() + 600000; }');
  for (const id of ['first', 'second']) {
    await player(id).evaluate((element) => {
      Object(element).currentTime = 110;
    });
    await eventually(`${id} is at its new place`, () =>
      player(id).evaluate(
        (element) => Object(element).readyState >= 2 && Math.round(Object(element).currentTime) === 110,
      ),
    );
    assert.notEqual(await addressOf(id), before, id);
  }
  await notebook.close();
});
