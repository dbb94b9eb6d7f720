import assert from 'node:assert/strict';
import { once } from 'node:events';
import { linkSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { installWithin, sizeOf } from '#src/packages/folder-size.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const staying = new AbortController().signal;

test('a file with two names in the folder counts once', async (t) => {
  const folder = temporaryDirectory(t);
  mkdirSync(join(folder, 'cache'));
  writeFileSync(join(folder, 'cache', 'a'), 'x'.repeat(1000));
  linkSync(join(folder, 'cache', 'a'), join(folder, 'a'));
  assert.equal(await sizeOf(folder), 1000);
});

test('an installation that outgrows its limit is broken off at once', async (t) => {
  const folder = temporaryDirectory(t);
  const endless = async (signal: AbortSignal) => {
    writeFileSync(join(folder, 'a'), 'x'.repeat(3000));
    await once(signal, 'abort');
    throw new Error('broken off');
  };
  await assert.rejects(installWithin({ bytes: 2000, ofBytes: 5000 }, folder, staying, endless), /take more/);
});

test('an installation that fails within its limit reports the reason', async (t) => {
  const failing = async () => {
    throw new Error('no such package');
  };
  const room = { bytes: 2000, ofBytes: 5000 };
  await assert.rejects(installWithin(room, temporaryDirectory(t), staying, failing), /no such package/);
});
