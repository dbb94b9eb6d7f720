/** Copies of files and the quota of their workspace. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import { WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import { removeAfter } from '#test/support/remove-folder.ts';

const MIB = 1024 * 1024;
const WORKSPACE = 'ws_1' as WorkspaceId;

test('a file is copied up to the quota, and a copy that is refused or given up leaves nothing', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'troupe-copy-'));
  removeAfter({ after: (cleanUp) => t.after(cleanUp) }, root);
  const files = new WorkspaceFiles(() => root, { maxOf: () => ({ bytes: MIB, entries: 20 }) });
  const copy = (from: string, to: string, signal = new AbortController().signal) =>
    files.copy(WORKSPACE, from, to, { maxBytes: MIB, signal });
  writeFileSync(join(root, 'half'), Buffer.alloc(MIB / 2, 'x'));
  writeFileSync(join(root, 'byte'), 'x');
  await assert.rejects(copy('half', 'copy'), { code: 'file_quota_exceeded' });
  await files.delete(WORKSPACE, 'byte', () => {});
  const gone = new AbortController();
  gone.abort(new Error('the page has left'));
  await assert.rejects(copy('half', 'copy', gone.signal), /the page has left/);
  assert.deepEqual(readdirSync(root), ['half']);
  assert.equal((await copy('half', 'copy')).bytes, MIB / 2);
  assert.ok(existsSync(join(root, 'copy')));
  await assert.rejects(copy('half', 'more'), { code: 'file_quota_exceeded' });
});
