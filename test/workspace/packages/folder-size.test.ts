import assert from 'node:assert/strict';
import { once } from 'node:events';
import { linkSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { folderSizeOf, installWithin, whileWithin } from '#src/workspace/packages/folder-size.ts';
import { PackageFailure } from '#src/workspace/packages/package-failure.ts';
import { MAX_BUILD_SIZE } from '#src/workspace/packages/source-builds.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const staying = new AbortController().signal;

test('a file with two names in the folder counts once', async (t) => {
  const folder = temporaryDirectory(t);
  mkdirSync(join(folder, 'cache'));
  writeFileSync(join(folder, 'cache', 'a'), 'x'.repeat(1000));
  linkSync(join(folder, 'cache', 'a'), join(folder, 'a'));
  assert.equal(await folderSizeOf(folder), 1000);
});

test('an installation that exceeds its limit is stopped at once', async (t) => {
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

test('a build may write as many files and bytes as its limit, and not one more', async (t) => {
  const failure = new PackageFailure('too large');
  const limit = { files: 4, bytes: 1000 };
  const build = (names: readonly string[], bytes: number) => {
    const folder = temporaryDirectory(t);
    mkdirSync(join(folder, 'inner')); // counts as a file
    return whileWithin(limit, folder, staying, failure, async () => {
      for (const name of names) writeFileSync(join(folder, name), '');
      writeFileSync(join(folder, 'large'), 'x'.repeat(bytes));
      return 'built';
    });
  };
  assert.equal(await build(['a', 'inner/b'], 1000), 'built');
  await assert.rejects(build(['a', 'inner/b', 'c'], 0), failure);
  await assert.rejects(build(['a', 'inner/b'], 1001), failure);
  assert.deepEqual(MAX_BUILD_SIZE, { bytes: 4 * 2 ** 30, files: 200_000 });
});

test('a build is ended while it works when it writes more files than its limit', async (t) => {
  const folder = temporaryDirectory(t);
  const failure = new PackageFailure('too large');
  const endless = async (signal: AbortSignal) => {
    for (const name of ['a', 'b', 'c']) writeFileSync(join(folder, name), '');
    await once(signal, 'abort');
    throw signal.reason;
  };
  await assert.rejects(whileWithin({ files: 2, bytes: 1000 }, folder, staying, failure, endless), failure);
});
