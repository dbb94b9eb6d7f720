/** A store in a directory that is removed with the test, and a log that keeps its lines in memory. */
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Log, openLog } from '#src/base/log/log.ts';
import { openSharedStore, openStore } from '#storage/open-store.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import type { Store } from '#storage/store.ts';
import { removeAfter } from '../remove-folder.ts';

/** Returns a new directory, which is removed after the test. */
export function temporaryDirectory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'troupe-test-'));
  removeAfter(t, path);
  return path;
}

/** A store that can be reopened. */
export interface TemporaryStore {
  /** The currently open store. */
  readonly store: Store;
  readonly path: string;
  /** Closes the store and opens it again, as a new server would. */
  reopen(): Promise<Store>;
}

/** Has workspaces in the store, without members. */
export function addWorkspaces(store: Store, ...ids: string[]): void {
  store.write((tx) => {
    for (const id of ids) tx.put(workspaceRecords, { name: '', createdAt: '', owners: 1 }, id);
  });
}

/** Opens a store, which is closed after the test. */
export async function temporaryStore(t: TestContext): Promise<TemporaryStore> {
  const path = temporaryDirectory(t);
  let store = await openStore(path, assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  return {
    get store() {
      return store;
    },
    path,
    async reopen() {
      await store[Symbol.asyncDispose]();
      store = await openStore(path, assert.fail);
      return store;
    },
  };
}

/** Opens a store as one of several workers does. It is closed after the test. */
export async function sharedStore(t: TestContext, path: string): Promise<Store> {
  const store = await openSharedStore(path, assert.fail, async () => undefined);
  t.after(() => store[Symbol.asyncDispose]());
  return store;
}

/** One line of the log. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Returns a log, and its lines. */
export function rememberingLog(): { log: Log; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const log = openLog({ level: 'trace', destination: { write: (line) => lines.push(JSON.parse(line)) } });
  return { log, lines };
}
