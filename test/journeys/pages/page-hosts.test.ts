/** Outputs that refer to other hosts, in Chromium: a refused host is named, and an allowed one is loaded from. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { cellOf, notebookIn, openBrowser, outputOf, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer, type TestServer } from '#test/support/server-fixture.ts';

const PICTURE =
  '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><rect width="20" height="20"/></svg>';

/** A host of pictures, data and scripts, and the paths that it was asked for. */
const asked: string[] = [];
const host = createServer((request, response) => {
  asked.push(request.url ?? '');
  const type = request.url?.endsWith('.js') ? 'text/javascript' : 'image/svg+xml';
  response.writeHead(200, { 'content-type': type, 'access-control-allow-origin': '*' });
  response.end(type === 'image/svg+xml' ? PICTURE : 'window.loaded = true');
});
await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
test.after(() => host.close());
const { port } = host.address() as AddressInfo;
const origin = `http://127.0.0.1:${port}`;
/** The same program is another host for browsers. */
const otherOrigin = `http://localhost:${port}`;

const server = await startServer(test);
const allowing = await startServer(test, { TROUPE_PAGE_HOSTS: origin });

async function openShowing(t: TestContext, on: TestServer, html: string): Promise<Page> {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(on, { shown: `import marimo as mo\nmo.Html(${JSON.stringify(html)})` });
  t.after(() => notebook.close());
  const { url } = await on.client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(on, url);
  await cellOf(page, 'shown').getByTestId('run-button').first().click();
  await outputOf(page, 'shown').locator('img').first().waitFor({ state: 'attached' });
  return page;
}

const sentencesOf = (page: Page) => notebookIn(page).locator('#troupe-refusals p').allTextContents();

test('a page names each refused host of its outputs once, even if a frame in an output refers to it', {
  skip: withoutBrowser,
}, async (t) => {
  // marimo's page asks for this with every chart of plotly.
  const formulas = 'https://cdn.jsdelivr.net/npm/mathjax-full@3.2.2/es5/tex-mml-svg.min.js';
  const scripts = `<script src='${formulas}'></script><script src='${otherOrigin}/framed.js'></script>`;
  const framed = `<!doctype html><img src='${otherOrigin}/framed.svg'>${scripts}`;
  const html = `<img src="${origin}/one.svg"><img src="${origin}/two.svg"><iframe srcdoc="${framed}"></iframe>`;
  const page = await openShowing(t, server, html);
  const box = notebookIn(page).locator('#troupe-refusals');
  await box.getByText(`no scripts and style sheets of ${otherOrigin}`).waitFor();
  await box.getByText(`loads nothing of ${otherOrigin}`).waitFor();
  await box.getByText(`loads nothing of ${origin}`).waitFor();
  const sentences = await sentencesOf(page);
  assert.equal(sentences.length, 3, sentences.join('\n'));
  assert.match(
    sentences.join('\n'),
    /The operator of the server can allow it, with the setting TROUPE_PAGE_HOSTS\./,
  );
  assert.deepEqual(asked, []);
  await box.getByRole('button', { name: 'Close' }).click();
  await box.waitFor({ state: 'detached' });
});

test('a page loads pictures, frames and data from a host that the operator allows, and no scripts', {
  skip: withoutBrowser,
}, async (t) => {
  const html = `<img src="${origin}/allowed.svg"><iframe src="${origin}/frame.svg"></iframe>`;
  const page = await openShowing(t, allowing, html);
  await outputOf(page, 'shown')
    .locator('img')
    .first()
    .evaluate((image) => Object(image).decode() as Promise<void>);
  const frame = page.frames().find((one) => one.url().endsWith('/page/'));
  const status = await frame?.evaluate(`fetch('${origin}/data.svg').then(({ status }) => status)`);
  assert.equal(status, 200);
  const framed = outputOf(page, 'shown').locator('iframe').contentFrame();
  await framed.locator('rect').waitFor({ state: 'attached' });
  assert.deepEqual(await sentencesOf(page), []);
  await frame?.evaluate(
    `document.head.append(Object.assign(document.createElement('script'), { src: '${origin}/script.js' }))`,
  );
  await notebookIn(page).getByText(`no scripts and style sheets of ${origin}`).waitFor();
  assert.deepEqual(asked.sort(), ['/allowed.svg', '/data.svg', '/frame.svg']);
});
