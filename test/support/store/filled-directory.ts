/** A data directory that no server uses. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { defineRecord } from '#storage/codec.ts';
import { openStore } from '#storage/open-store.ts';
import { temporaryDirectory } from './temporary-store.ts';

export const things = defineRecord<string>('thing', 1);

/** Resolves with a data directory that has a store of 500 records and files of one workspace. */
export async function filledDirectory(t: TestContext): Promise<string> {
  const root = temporaryDirectory(t);
  const dataDir = join(root, 'data');
  const files = join(dataDir, 'workspaces', 'ws_1', 'files');
  mkdirSync(join(files, 'deep'), { recursive: true });
  writeFileSync(join(files, 'deep', 'table.csv'), 'a,b\n1,2\n');
  writeFileSync(join(files, 'run.sh'), 'true', { mode: 0o755 });
  const store = await openStore(join(dataDir, 'store'), assert.fail);
  store.write((tx) => {
    for (let n = 0; n < 500; n++) tx.put(things, `thing ${n} `.repeat(n % 50), 'ws_1', `t${n}`);
  });
  await store.durable();
  await store[Symbol.asyncDispose]();
  return dataDir;
}
