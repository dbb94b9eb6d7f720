/** The addon of uWebSockets.js: which copy runs, and its preparation. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createUwsApp, loadUws } from '#src/http/uws.ts';
import { serve } from '#test/http/test-server.ts';
import { checkout, importSetup, REPOSITORY } from './checkout.ts';

const setup = await importSetup('uwebsockets');
const folder = dirname(createRequire(import.meta.url).resolve('uWebSockets.js'));
const NAMES = ['x64', 'arm64'].flatMap((arch) =>
  [115, 127, 137, 141].map((abi) => `uws_linux_${arch}_${abi}`),
);

/** Runs `work` with a setting in the environment. */
function withSetting(t: TestContext, value: string): void {
  process.env.TROUPE_UWEBSOCKETS = value;
  t.after(() => delete process.env.TROUPE_UWEBSOCKETS);
}

test('each addon of the package is prepared for older systems, and no byte of its code changes', () => {
  for (const name of NAMES) {
    const addon = readFileSync(join(folder, `${name}.node`));
    const prepared: Buffer = setup.prepared(addon, name);
    assert.equal(prepared.length, addon.length, name);
    const changed = addon.reduce((count, byte, at) => count + Number(byte !== prepared[at]), 0);
    assert.ok(changed > 0 && changed <= 8, `${name}: ${changed} bytes`);
    assert.ok(!prepared.equals(addon));
  }
});

test('an addon is refused with one sentence when it, or its prepared form, is not the one of this release', () => {
  const [name = ''] = NAMES;
  const addon = readFileSync(join(folder, `${name}.node`));
  addon[addon.length - 1]! ^= 1;
  assert.throws(
    () => setup.prepared(addon, name),
    /^Error: uWebSockets\.js is refused, .*uws_linux_x64_115\.node of the package has the SHA-256 [0-9a-f]{64} instead of 5b126ee0/,
  );
});

test('a function of the newer glibc without an older form is an error', async () => {
  const { withOlderFunctions } = await importSetup('elf');
  const addon = readFileSync(join(folder, 'uws_linux_x64_115.node'));
  assert.throws(() => withOlderFunctions(addon, 'GLIBC_2.36'), /arc4random of GLIBC_2\.36 has no older form/);
});

test('set-up writes the copy once, for every user, and the server of this checkout runs it', async (t) => {
  const { root } = checkout(t);
  assert.equal(setup.pending(root), 'the addon is not prepared');
  await setup.perform(root);
  assert.equal(setup.pending(root), undefined);
  const { path, origin } = setup.copyInUse(root);
  assert.equal(dirname(path), join(root, 'dist/uwebsockets'));
  assert.equal(origin, '@btc-vision/uwebsockets.js 20.57.0, prepared');
  rmSync(path);
  assert.equal(setup.pending(root), 'the addon is not prepared');
  assert.match(setup.copyInUse(root).origin, /unchanged$/);
  const own = setup.copyInUse(REPOSITORY).path;
  assert.ok(existsSync(own));
  assert.equal(await loadUws(), createRequire(import.meta.url)(own));
});

test('where the addon does not load unprepared, the error tells a user without write permission which user must prepare it', async (t) => {
  if (process.getuid?.() === 0) return t.skip('root can write everywhere');
  const { root } = checkout(t);
  mkdirSync(join(root, 'dist'));
  chmodSync(join(root, 'dist'), 0o500);
  await assert.rejects(setup.perform(root), /Run `troupe setup` as the user who installed Troupe\.$/);
});

test('a copy that the setting names is loaded in place of the installed copy, and nothing is prepared', async (t) => {
  const { root, write } = checkout(t);
  write('other/package.json', '{"main": "uws.js"}');
  write(
    'other/uws.js',
    `const uws = require(${JSON.stringify(setup.copyInUse(REPOSITORY).path)});
    exports.App = () => { globalThis.otherCopyUsed = true; return uws.App(); };
    for (const name of Object.keys(uws)) exports[name] ??= uws[name];`,
  );
  const named = join(root, 'other');
  await serve(t, [], { uwebsockets: named });
  assert.equal(Reflect.get(globalThis, 'otherCopyUsed'), true);
  withSetting(t, named);
  assert.equal(setup.pending(root), undefined);
  assert.deepEqual(setup.copyInUse(root, named), { path: named, origin: 'named by TROUPE_UWEBSOCKETS' });
});

test('a named copy that does not load, or is another module, keeps the server from starting', async (t) => {
  const { root, write } = checkout(t);
  write('other.cjs', 'exports.Application = class {};');
  const other = join(root, 'other.cjs');
  await assert.rejects(
    loadUws(other),
    /The binary of uWebSockets\.js \(.*other\.cjs, named by TROUPE_UWEBSOCKETS\) does not load .*: It is not uWebSockets\.js\.$/,
  );
  await assert.rejects(
    loadUws(join(root, 'nowhere')),
    /nowhere, named by TROUPE_UWEBSOCKETS\) does not load/,
  );
});

test('a Node.js for which the registry has no addon is named first, with the way out', (t) => {
  const next = { node: '26.2.0', modules: '147' };
  assert.throws(() => setup.requireAddon(next), {
    message: `The npm registry has no uWebSockets.js for Node.js 26.2.0 on ${process.arch}: use Node.js 24, 22 or 20, or name another copy with TROUPE_UWEBSOCKETS (docs/operating.md).`,
  });
  assert.doesNotThrow(() => setup.requireAddon());
  const { root, write } = checkout(t);
  write('troupe.config.json', '{"uwebsockets": "/opt/uws"}');
  assert.doesNotThrow(() => setup.requireAddon(next, root));
  withSetting(t, '/opt/uws');
  assert.doesNotThrow(() => setup.requireAddon(next));
});

test('half requests and idle connections end after ten seconds, although this copy would wait longer', async () => {
  const app = createUwsApp(await loadUws());
  for (const name of ['getIdleTimeout', 'getResponseTimeout']) {
    const seconds = Reflect.get(app, name);
    assert.ok(typeof seconds === 'function', name);
    assert.equal(seconds.call(app), 10, name);
  }
});
