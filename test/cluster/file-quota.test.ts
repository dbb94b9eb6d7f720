/** The quota of the files of a workspace whose kernels are in two workers. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { Ground } from '#src/start/app/ground.ts';
import type { Late } from '#src/start/app/late-planes.ts';
import { openFiles } from '#src/start/app/open-files.ts';
import { eventually } from '#test/support/processes.ts';
import { rememberingLog, temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { testCluster } from '#test/support/test-cluster.ts';
import { testContext } from '#test/support/test-context.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const MAX_FILES = 3;
const MINUTE_MS = 60_000;

function startWorkers(t: TestContext) {
  const folder = temporaryDirectory(t);
  const { log, lines } = rememberingLog();
  const workers = testCluster(2, () => 0).map((cluster) => {
    const stack = new AsyncDisposableStack();
    t.after(() => stack[Symbol.asyncDispose]());
    const limits = { of: (_: WorkspaceId, name: string) => (name === 'files' ? MAX_FILES : 0) };
    const directory = { workspaceFiles: () => folder, workspaceFilesPath: () => folder };
    const parts = { log, cluster, identity: { limits }, prerequisites: { directory } };
    const late = { planes: { kernelsInUse: { workspaces: () => [WORKSPACE] } } } as unknown as Late;
    return { ...openFiles(testContext<Ground>(parts), late, stack), cluster };
  });
  const [first, second] = workers;
  const write = (count: number) => {
    for (let n = 0; n < count; n++) writeFileSync(join(folder, `${n}.txt`), 'text');
  };
  return { first: first!.quota, second: second!.quota, asked: second!.cluster.asked, write, lines };
}

test('files that one worker has counted are not counted again by other workers, and every worker refuses sessions by that count', async (t) => {
  const { first, second, asked, write, lines } = startWorkers(t);
  write(MAX_FILES + 1);
  await first.refresh(WORKSPACE, 0);
  assert.deepEqual(asked, ['files-counted']);
  const counted = await first.usage(WORKSPACE);
  await second.refresh(WORKSPACE, MINUTE_MS);
  assert.deepEqual(await second.usage(WORKSPACE), counted, 'the count is the same one');
  await assert.rejects(second.admitSession(WORKSPACE), { code: 'file_quota_exceeded' });
  await assert.rejects(first.admitSession(WORKSPACE), { code: 'file_quota_exceeded' });
  const warnings = lines.filter(({ msg }) => msg === 'the files of a workspace are beyond their quota');
  assert.equal(warnings.length, 1, 'one worker has said so');
});

test("a worker that has changed files since its last count does not use another worker's older count", async (t) => {
  const { first, second, write } = startWorkers(t);
  write(1);
  await second.usage(WORKSPACE);
  const charge = second.charge(WORKSPACE);
  await charge.file(undefined);
  charge.settle(undefined);
  write(MAX_FILES);
  await eventually('the first one has counted again', async () => {
    await first.refresh(WORKSPACE, 0);
    return (await first.usage(WORKSPACE)).entries === MAX_FILES;
  });
  assert.equal((await second.usage(WORKSPACE)).entries, 2, 'the one that it has counted, and its own');
});
