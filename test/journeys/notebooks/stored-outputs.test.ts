/** The size of runs' outputs in the store. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Run } from '#src/contract/wire/run.ts';
import { openStoreReader } from '#storage/open-store.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const KB = 1000;
const RUNS = 5;
/**
 * The record of a run with its places in lists, and the first 20,000 characters of an output's
 * text.
 */
const MAX_OTHER_BYTES = 25 * KB;

/** Code that shows 100 kB, which begin differently each time. */
const MARKUP = 'import os\nimport marimo as mo\nmo.Html("<b>" + os.urandom(50_000).hex() + "</b>")';
/** Code that shows an image of 75 kB in two types at once. */
const IMAGE = `import base64, os
class Shown:
    def _repr_mimebundle_(self, include=None, exclude=None):
        url = 'data:image/png;base64,' + base64.b64encode(os.urandom(75_000)).decode()
        return {'image/png': url, 'text/plain': 'a picture'}
Shown()`;

const assetsOf = (run: Run) => run.output?.parts.filter((part) => part.type === 'asset') ?? [];

/** Returns the bytes of all records of the workspace, or of some kinds. */
async function storedBytes(dataDir: string, kinds?: readonly string[]): Promise<number> {
  await using store = await openStoreReader(`${dataDir}/store`);
  let sum = 0;
  for (const { key, bytes } of store.listSizes(OWNER.workspaceId, undefined))
    if (kinds === undefined || kinds.includes(key[1])) sum += bytes;
  return sum;
}

test('an output that several cells show is stored once, and deleted with its last use', async (t) => {
  let server = await startServer(t);
  const { dataDir } = server;
  for (const [code, otherBytes] of [
    [MARKUP, MAX_OTHER_BYTES],
    [IMAGE, MAX_OTHER_BYTES],
  ] as const) {
    const notebook = await openNotebook(server, { shown: code });
    const run = () => notebook.run(['shown']);
    const first = await run();
    const bytesBefore = await storedBytes(dataDir);
    const runs: Run[] = [];
    for (let i = 0; i < RUNS; i++) runs.push(await run());
    const last = runs.at(-1)!;
    const [asset] = assetsOf(last);
    assert.ok(asset !== undefined && asset.bytes >= 75 * KB, JSON.stringify(last).slice(0, 500));
    const each = ((await storedBytes(dataDir)) - bytesBefore) / RUNS;
    t.diagnostic(`${each} bytes for an output of ${asset.bytes}`);
    assert.ok(each <= asset.bytes + otherBytes, `${each} bytes for an output of ${asset.bytes}`);

    const shown = async () => {
      await using log = await EventLog.open(server.client, notebook.id);
      const [output] = log.dataOf('cell-op').flatMap((op) => op.output ?? []);
      const { bytes } = await server.client.notebookSessions.asset(notebook.id, output?.assetId ?? '');
      return { output, value: Buffer.from(bytes).toString() };
    };
    const before = await shown();
    assert.ok(before.value.length >= asset.bytes);
    for (const { id } of [first, ...runs]) await server.client.runs.delete(id);
    server = await server.restart();
    assert.deepEqual(await shown(), before);
  }
});
