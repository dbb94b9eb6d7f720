import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import { listFiles } from '#src/workspace/files/file-list.ts';
import { WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

test('listing a folder ends without an error when the client leaves', async (t) => {
  const root = temporaryDirectory(t);
  for (let n = 0; n < 10; n++) writeFileSync(join(root, `file-${n}`), '');
  const client = new AbortController();
  const listed = listFiles(
    new WorkspaceFiles(() => root),
    'ws_1' as WorkspaceId,
    { limit: 10 },
    client.signal,
  );
  client.abort();
  assert.deepEqual(await listed, { items: [], nextCursor: null });
});
