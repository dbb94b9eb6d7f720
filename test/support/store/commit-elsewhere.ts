/** Has another process write records of a store, within one turn of the event loop. As a script it is that process. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { defineRecord, type RecordKind } from '#storage/codec.ts';
import { openSharedStore } from '#storage/open-store.ts';

const SCRIPT = fileURLToPath(import.meta.url);

/** A record to write; one whose value is null is removed. */
export type RecordElsewhere = readonly [
  kind: Pick<RecordKind<unknown>, 'name' | 'version'>,
  value: unknown,
  partition: string,
  ...ids: string[],
];

/** Returns when the records in the store at `path` are on disk. */
export function commitElsewhere(path: string, ...records: readonly RecordElsewhere[]): void {
  const args = ['--conditions=development', SCRIPT, path, JSON.stringify(records)];
  const { status, stderr } = spawnSync(process.execPath, args);
  assert.equal(status, 0, String(stderr));
}

const [, script, path = '', records = '[]'] = process.argv;
if (script === SCRIPT) {
  const store = await openSharedStore(path, assert.fail, async () => undefined);
  store.write((tx) => {
    for (const [{ name, version }, value, partition, ...ids] of JSON.parse(records)) {
      const kind = defineRecord<unknown>(name, version);
      if (value === null) tx.remove(kind, partition, ...ids);
      else tx.put(kind, value, partition, ...ids);
    }
  });
  await store[Symbol.asyncDispose]();
}
