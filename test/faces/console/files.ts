import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { agentSessionMachine } from '#machines/agent-session.ts';
import { environmentMachine } from '#machines/environment.ts';
import { hookMachine } from '#machines/hook.ts';
import { jobMachine } from '#machines/job.ts';
import { notebookSessionMachine } from '#machines/notebook-session.ts';
import { runMachine } from '#machines/run.ts';
import type { TestServer } from '#test/support/server-fixture.ts';

const FOLDER = join('dist', 'console');
const KIB = 1024;
const MACHINES = [
  environmentMachine,
  notebookSessionMachine,
  agentSessionMachine,
  runMachine,
  jobMachine,
  hookMachine,
];

/** Tests of the files that the server serves as the console, without a browser. */
export async function files(t: TestContext, server: TestServer): Promise<void> {
  const page = await (await fetch(`${server.baseUrl}/console`)).text();
  const loaded = [...page.matchAll(/(?:href|src)="console\/([^"]+)"/g)].map(([, name]) => name ?? '');
  const gzipped = (name: string) => gzipSync(readFileSync(join(FOLDER, name))).byteLength;

  await t.test('the files of the first page have at most 60 KiB, and the whole console at most 136', () => {
    const all = readdirSync(FOLDER).filter((name) => name !== 'files.json');
    const sum = (names: readonly string[]) => names.reduce((bytes, name) => bytes + gzipped(name), 0);
    assert.ok(loaded.length >= 2, page);
    assert.ok(sum(['index.html', ...loaded]) < 60 * KIB, `${sum(loaded)} bytes`);
    assert.ok(sum(all) < 136 * KIB, `${sum(all)} bytes`);
  });

  await t.test(
    'the page has no inline scripts or styles, and its policy allows nothing from other hosts',
    async () => {
      const { headers } = await fetch(`${server.baseUrl}/console`);
      const policy = headers.get('content-security-policy') ?? '';
      assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /);
      assert.match(policy, /frame-ancestors 'none'; require-trusted-types-for 'script'/);
      assert.doesNotMatch(policy, /unsafe|\*|http/);
      assert.doesNotMatch(page, /<style|<script>|<script [^>]*>[^<]| on\w+=| style=/);
    },
  );

  await t.test(
    'files never change under their names, and the page itself is always revalidated',
    async () => {
      for (const name of loaded) {
        const { headers, status } = await fetch(`${server.baseUrl}/console/${name}`);
        assert.deepEqual(
          [status, headers.get('cache-control')],
          [200, 'public, max-age=31536000, immutable'],
          name,
        );
        assert.equal(headers.get('x-content-type-options'), 'nosniff');
      }
      const { headers } = await fetch(`${server.baseUrl}/console`);
      assert.equal(headers.get('cache-control'), 'no-cache');
      const again = await fetch(`${server.baseUrl}/console`, {
        headers: { 'if-none-match': headers.get('etag') ?? '' },
      });
      assert.equal(again.status, 304);
      // A browser replaces its stored headers with those of a 304.
      assert.equal(again.headers.get('content-security-policy'), headers.get('content-security-policy'));
    },
  );

  await t.test('there is a picture of the statechart of every kind of actor', () => {
    const pictures = readdirSync(FOLDER).find((name) => /^charts-\w+\.json$/.test(name)) ?? '';
    const drawn = Object.keys(JSON.parse(readFileSync(join(FOLDER, pictures), 'utf8')));
    assert.deepEqual(drawn.sort(), MACHINES.map(({ id }) => id).sort());
  });

  await t.test('the console opens with a slash at its end, and with query parameters', async () => {
    for (const path of [
      '/console/',
      '/console?utm_source=mail',
      '/console/?utm_source=mail&utm_source=chat',
    ]) {
      const answer = await fetch(`${server.baseUrl}${path}`);
      assert.equal(answer.status, 200, path);
      assert.equal(await answer.text(), page, path);
      // The links of the page are relative to this path.
      assert.equal(new URL(answer.url).pathname, '/console');
    }
    const { headers } = await fetch(`${server.baseUrl}/console/`, { redirect: 'manual' });
    assert.equal(headers.get('location'), '../console', 'a proxy may have the server below a path');
    assert.equal((await fetch(`${server.baseUrl}/?utm_source=mail`)).status, 200);
  });

  await t.test('browsers that accept compression get large files compressed', async () => {
    const sizeOf = (one: string) => statSync(join(FOLDER, one)).size;
    const [name] = loaded.filter((one) => one.endsWith('.js')).sort((a, b) => sizeOf(b) - sizeOf(a));
    const { headers } = await server.request('GET', `/console/${name}`, {
      headers: { 'accept-encoding': 'gzip' },
    });
    assert.equal(headers['content-encoding'], 'gzip');
  });

  await t.test('only files from the build are served', async () => {
    for (const name of [
      'files.json',
      'index.html',
      'home.html',
      '..%2Fserver%2Fmain.js',
      'main.tsx',
      'constructor',
      '%00',
    ])
      assert.equal((await fetch(`${server.baseUrl}/console/${name}`)).status, 404, name);
  });

  await t.test('the frame for HTML has no origin, and runs its own script only', async () => {
    const name = readdirSync(FOLDER).find((one) => one.startsWith('frame-'));
    const answer = await fetch(`${server.baseUrl}/console/${name}`);
    const policy = answer.headers.get('content-security-policy') ?? '';
    assert.match(policy, /^sandbox allow-scripts; default-src 'none'; script-src 'sha256-[\w+/]+=*';/);
    assert.doesNotMatch(policy, /allow-same-origin|connect-src|http/);
  });
}
