import assert from 'node:assert/strict';
import test from 'node:test';
import { cellsOf } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { id } = await server.client.notebooks.create({
  serialization: { cells: cellsOf({ a: 'x = "</script><script>alert(1)</script>"' }) },
});

async function page(query = '', headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const path = `/api/v3/notebooks/${id}/export?format=html${query}`;
  const { status, text } = await server.request('GET', path, { headers });
  assert.equal(status, 200);
  return text;
}

/** The addresses that a page loads: every `src`, and the `href` of its links. */
function linksOf(html: string): string[] {
  const tags = html.match(/<(?:link|script|img)\b[^>]*>/g) ?? [];
  return tags.flatMap((tag) => /\b(?:href|src)="([^"]*)"/.exec(tag)?.[1] ?? []);
}

test('the server serves all files of a page, to any origin, with unlimited caching', async () => {
  const links = linksOf(await page());
  assert.ok(links.length > 100);
  for (const link of links) {
    assert.ok(link.startsWith(`${server.baseUrl}/marimo/`), link);
    const { status, headers } = await fetch(link, { headers: { origin: 'null' } });
    assert.deepEqual(
      [
        status,
        headers.get('access-control-allow-origin'),
        headers.get('cross-origin-resource-policy'),
        headers.get('cache-control'),
        headers.get('x-content-type-options'),
      ],
      [200, '*', 'cross-origin', 'public, max-age=31536000, immutable', 'nosniff'],
      link,
    );
    const ending = link.split('.').at(-1) ?? '';
    assert.match(headers.get('content-type') ?? '', TYPE_OF[ending] ?? /^never/, link);
  }
});

const TYPE_OF: Readonly<Record<string, RegExp>> = {
  js: /^text\/javascript; charset=utf-8$/,
  css: /^text\/css; charset=utf-8$/,
  png: /^image\/png$/,
  ico: /^image\/x-icon$/,
  json: /^application\/json$/,
  woff2: /^font\/woff2$/,
};

test('notebook code in a page cannot end the script that contains it', async () => {
  assert.equal((await page()).includes('<script>alert(1)'), false);
});

test('links in a page begin with the address of its request', async () => {
  const behind = await page('', { host: 'troupe.example:8443', 'x-forwarded-proto': 'https' });
  assert.match(linksOf(behind)[0] ?? '', /^https:\/\/troupe\.example:8443\/marimo\/[0-9.]+\/favicon\.ico$/);
  const path = `/api/v3/notebooks/${id}/export?format=html`;
  const { status, body } = await server.request('GET', path, { headers: { host: 'a"><script>' } });
  assert.deepEqual([status, (body as { code: string }).code], [400, 'invalid_request']);
});

test('a page can also load its files from a public CDN on request', async () => {
  const links = linksOf(await page('&frontEnd=cdn'));
  assert.ok(links.length > 100 && links.every((link) => link.startsWith('https://cdn.jsdelivr.net/')));
});

test('with a configured address, pages link there and not to the host of the request', async (t) => {
  const other = await startServer(t, { TROUPE_PUBLIC_URL: 'https://lab.example/troupe/' });
  const { id: notebookId } = await other.client.notebooks.create();
  const { text } = await other.request('GET', `/api/v3/notebooks/${notebookId}/export?format=html`);
  assert.match(linksOf(text)[0] ?? '', /^https:\/\/lab\.example\/troupe\/marimo\/[0-9.]+\/favicon\.ico$/);
});

test('no other file of the package is served', async () => {
  const [first = ''] = linksOf(await page());
  const root = new URL(first).pathname.replace('/favicon.ico', '');
  for (const path of [
    `${root}/index.html`,
    `${root}/CLAUDE.md`,
    `${root}/assets/..%2ffavicon.ico`,
    `${root}/..%2f__init__.py`,
    `${root}/assets/..%2f..%2f__init__.py`,
    `${root}/assets/nothing.js`,
    `${root}/assets`,
    '/marimo/0.0.1/favicon.ico',
    '/marimo/..%2f..%2f/favicon.ico',
  ]) {
    assert.equal((await server.request('GET', path)).status, 404, path);
  }
});
