import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { TestContext } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import type { Stage } from './stage.ts';

/**
 * Attacks. Each one calls `hit`, in the page or in a place that the frame could reach, or sends a
 * request to another host.
 */
const attacks = (elsewhere: string) =>
  [
    '<script>parent.hit?.("script"); top.hit?.("script")</script>',
    '<img src=x onerror="parent.hit(1)">',
    '<svg onload="parent.hit(2)"><script>parent.hit(3)</script><animate onbegin="parent.hit(4)" attributeName=x dur=1s></svg>',
    '<a id=link href="javascript:parent.hit(5)">click me</a>',
    '<a id=away target=_top href="/console#/elsewhere">leave</a>',
    '<iframe srcdoc="<script>top.hit(6)</script>"></iframe>',
    '<form action="javascript:parent.hit(7)"><button>send</button></form>',
    '<meta http-equiv=refresh content="0;url=javascript:parent.hit(8)">',
    `<img src="${elsewhere}/pixel.png">`,
    `<style>@import "${elsewhere}/style.css"; body { background: url(${elsewhere}/back.png) }</style>`,
    `<link rel=stylesheet href="${elsewhere}/link.css">`,
    `<video src="${elsewhere}/film.mp4" autoplay></video>`,
  ].join('\n');

export async function hostileOutput(t: TestContext, { server, browser }: Stage): Promise<void> {
  let connections = 0;
  const listener = createServer((socket) => {
    connections++;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.after(() => listener.close());
  const address = listener.address();
  assert.ok(typeof address === 'object' && address !== null);
  const elsewhere = `http://127.0.0.1:${address.port}`;
  const title = '<img src=x onerror="hit(9)"><script>hit(10)</script>';
  const notebook = await openNotebook(
    server,
    {
      html: `class Html:\n    def _mime_(self): return 'text/html', ${JSON.stringify(attacks(elsewhere))}\nHtml()`,
      svg: `class Svg:\n    def _mime_(self): return 'image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20" onload="top.hit(11)"><script>top.hit(12)</script><image href="${elsewhere}/a.png"/></svg>'\nSvg()`,
      text: `print('<img src=x onerror="hit(13)">', '\\x1b[31mred')`,
      markdown: `import marimo as mo\nmo.md('[a link](javascript:top.hit(14)) <img src=x onerror="top.hit(15)">')`,
      error: `raise ValueError('<script>hit(16)</script>')`,
    },
    { title },
  );
  const run = await notebook.run([]);
  const { page, complaints } = await browser.signIn(server);
  await page.evaluate('window.hits = []; window.hit = (what) => window.hits.push(what)');

  await t.test('the notebook shows hostile output, which cannot run, load or send anything', async () => {
    await page.evaluate(`location.hash = '#/ws_home/sessions/${notebook.id}'`);
    await page.getByRole('heading', { level: 1, name: title }).waitFor();
    const frame = page.locator('iframe').first().contentFrame();
    await frame.getByText('click me').waitFor();
    await frame.locator('#link').click();
    await frame.locator('#away').click();
    const tabs = browser.context.pages().length;
    await frame.locator('#away').click({ button: 'middle' });
    await frame.locator('#away').click({ modifiers: ['ControlOrMeta'] });
    assert.equal(
      await frame.locator('script, iframe, form, meta, link').count(),
      1,
      'only the script of the frame',
    );
    await page.getByText('<img src=x onerror="hit(13)"> red').waitFor();
    await page.getByText('<script>hit(16)</script>').first().waitFor();
    await page.locator('img.output').first().waitFor();
    assert.equal(browser.context.pages().length, tabs, 'no link opens a tab');
  });

  await t.test('the run shows hostile output in the same way', async () => {
    await page.evaluate(`location.hash = '#/ws_home/runs/${run.id}'`);
    await page.locator('iframe').first().contentFrame().getByText('click me').waitFor();
    await page.locator('iframe').first().contentFrame().locator('#link').click();
  });

  await t.test('the frame has no origin and can reach nothing', async () => {
    const frame = page.frames().find((one) => one.url().includes('/console/frame-'));
    assert.ok(frame !== undefined);
    assert.equal(await frame.evaluate('self.origin'), 'null');
    const attempts = await frame.evaluate<string[]>(`Promise.all([
      fetch('/api/v3/me').then(() => 'fetched', () => 'refused'),
      Promise.resolve().then(() => parent.document.title).then(() => 'read', () => 'refused'),
      Promise.resolve().then(() => localStorage.length).then(() => 'read', () => 'refused'),
    ])`);
    assert.deepEqual(attempts, ['refused', 'refused', 'refused']);
  });

  await t.test('a title with markup is shown as text everywhere', async () => {
    await page.evaluate(`location.hash = '#/ws_home/sessions'`);
    await page.getByRole('link', { name: title }).waitFor();
  });

  assert.deepEqual(await page.evaluate('window.hits'), []);
  assert.equal(new URL(page.url()).hash, '#/ws_home/sessions');
  assert.equal(connections, 0, 'nothing was asked of another host');
  // The page reports as an error each request that the policy of the frame has blocked, and reports
  // no other error.
  assert.deepEqual(
    complaints.filter((one) => !/violates the (following|document's) Content Security Policy/.test(one)),
    [],
  );
  await Promise.all([notebook.close(), page.close()]);
}
