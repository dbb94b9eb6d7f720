/** Charts of the Python client in front ends that cannot draw Vega: a picture, or HTML that loads Vega from a public CDN. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { PACKAGE, PROGRAMS, PYTHON, run } from './python.ts';

type Bundle = Readonly<Record<string, unknown>>;

const VEGALITE = 'application/vnd.vegalite.v6+json';
const SENTENCE = 'This chart needs scripts from cdn.jsdelivr.net, which this page has not loaded.';
const server = await startServer(test);
const env = {
  PYTHONPATH: PACKAGE,
  SERVICE_BASE_URL: server.baseUrl,
  SERVICE_ACCESS_TOKEN: OWNER.token,
  SERVICE_WORKSPACE_ID: OWNER.workspaceId,
};
const bundles = JSON.parse(await run(PYTHON, [join(PROGRAMS, 'charts.py')], { cwd: PACKAGE, env })) as Record<
  string,
  Bundle
>;

const htmlOf = (name: string) => String(bundles[name]?.['text/html']);

test('a chart of altair has its specification and HTML, also when the chart is too large for the record of its run', () => {
  for (const name of ['code', 'run']) {
    const { mark } = Object(bundles[name]?.[VEGALITE]) as { mark: { type: string } };
    assert.equal(mark.type, 'bar', name);
    assert.match(htmlOf(name), /"mode":"vega-lite"/, name);
  }
  assert.match(htmlOf('vega'), /"mode":"vega","scripts":\[\["vega","6/);
  assert.match(htmlOf('older'), /\["vega-lite","5/);
  assert.deepEqual(Object.keys(bundles.plotly ?? {}), ['text/plain', 'application/vnd.plotly.v1+json']);
});

test('with vl-convert-python a chart is a picture that loads nothing, and HTML if the chart cannot be drawn', () => {
  const { 'image/png': picture, ...rest } = bundles.drawn ?? {};
  assert.deepEqual(Object.keys(rest), ['text/plain', VEGALITE]);
  assert.deepEqual(JSON.parse(Buffer.from(String(picture), 'base64').toString()), [
    { mark: 'bar' },
    ['data:'],
  ]);
  assert.deepEqual(Object.keys(bundles.undrawn ?? {}), ['text/plain', VEGALITE, 'text/html']);
});

test('in marimo, which draws charts itself, a chart has only its specification', () => {
  assert.deepEqual(Object.keys(bundles.marimo ?? {}), ['text/plain', VEGALITE]);
});

/** Opens a page with these outputs. `script` is the text of each script of the CDN; without it, the CDN cannot be reached. */
async function show(t: TestContext, body: string, script?: (url: string) => string) {
  const { context } = await openBrowser(t);
  const page = await context.newPage();
  const asked: string[] = [];
  await page.route('https://cdn.jsdelivr.net/**', (route) => {
    const url = route.request().url();
    asked.push(url.replace('https://cdn.jsdelivr.net/npm/', ''));
    if (script === undefined) return route.abort();
    return route.fulfill({ contentType: 'text/javascript', body: script(url) });
  });
  await page.setContent(`<!doctype html><title>notebook</title><body>${body}</body>`);
  return { page, asked };
}

test('without a network the HTML of a chart is a sentence, and its texts run no script', {
  skip: withoutBrowser,
}, async (t) => {
  const { page, asked } = await show(t, htmlOf('older') + htmlOf('code'));
  await page.waitForFunction('window.troupeCharts && Object.keys(window.troupeCharts.embeds).length === 0');
  assert.deepEqual(await page.locator('body > div').allTextContents(), [SENTENCE, SENTENCE]);
  assert.equal(await page.title(), 'notebook');
  assert.equal(asked.length, 2, 'the scripts that follow are not asked for');
});

test('charts of both versions on one page are drawn by their own version of Vega, which is loaded once', {
  skip: withoutBrowser,
}, async (t) => {
  // Each script leaves its version to the next one, as the real ones do with their global names.
  const stub = (url: string) => {
    const [, name, version] = /npm\/([\w-]+)@([\d.]+)\//.exec(url) ?? [];
    if (name !== 'vega-embed') return `window['${name}'] = '${version}';`;
    return `{ const used = [window.vega, window['vega-lite'], '${version}'].join();
      window.vegaEmbed = (place, spec, { mode }) => { place.textContent = [used, mode, spec.title].join(' | '); }; }`;
  };
  const { page, asked } = await show(t, htmlOf('older') + htmlOf('code') + htmlOf('older'), stub);
  await page.waitForFunction(
    "[...document.querySelectorAll('body > div')].every(({ textContent }) => textContent.includes(' | '))",
  );
  const texts = await page.locator('body > div').allTextContents();
  assert.match(texts[0] ?? '', /^5[\d.]+,5[\d.]+,6[\d.]+ \| vega-lite \| <\/script>/);
  assert.match(texts[1] ?? '', /^6[\d.]+,6[\d.]+,7[\d.]+ \| vega-lite \| $/);
  assert.equal(texts[2], texts[0]);
  assert.equal(asked.length, 6);
});

test('a chart that Vega refuses shows the reason', { skip: withoutBrowser }, async (t) => {
  const stub = (url: string) =>
    url.includes('embed') ? "window.vegaEmbed = async () => { throw new Error('Invalid <mark>'); };" : '';
  const { page } = await show(t, htmlOf('code'), stub);
  const chart = page.locator('body > div', { hasText: 'could not be drawn' });
  assert.equal(await chart.textContent(), 'This chart could not be drawn: Invalid <mark>');
});
