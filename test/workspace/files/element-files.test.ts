/** The removal of files that pages have sent to elements. The server's whole way with them is in test/journeys/pages. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import { ElementFiles, MAX_REMOVED_FILES } from '#src/workspace/files/element-files.ts';
import { Folder } from '#src/workspace/files/folder.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

/** Files whose folders open when the test lets them. `begun` has the sessions whose folder was asked for. */
function heldFiles(t: TestContext) {
  const root = temporaryDirectory(t);
  const begun: { readonly sessionId: string; open(): void }[] = [];
  const files = new ElementFiles({
    folder: async (_: WorkspaceId, names: readonly string[]) => {
      await new Promise<void>((open) => begun.push({ sessionId: names.at(-1)!, open }));
      return Folder.open(root, names);
    },
    writeAt: () => assert.fail(),
  });
  const pathIn = (sessionId: string, id: string) => join(root, files.pathOf(sessionId), id);
  const remove = (sessionId: string, ids: readonly string[], workspaceId = 'ws_1') =>
    files.remove({ workspaceId: workspaceId as WorkspaceId, sessionId }, ids);
  const add = (sessionId: string, id: string) => {
    mkdirSync(join(root, files.pathOf(sessionId)), { recursive: true });
    writeFileSync(pathIn(sessionId, id), 'x');
  };
  return { begun, remove, add, has: (sessionId: string, id: string) => existsSync(pathIn(sessionId, id)) };
}

const idOf = (at: number) => at.toString(16).padStart(32, '0');
const settled = () => new Promise((resolve) => setImmediate(resolve));

const outcomeOf = (removal: Promise<void>) =>
  removal.then(
    () => 'removed',
    (error: unknown) => Object(error).code,
  );

test('the removals of one workspace are carried out one by one, and those of another one do not wait for them', async (t) => {
  const { begun, remove } = heldFiles(t);
  const outcomes = Array.from({ length: 1 + 32 + 1 }, (_, at) =>
    outcomeOf(remove(`busy${at % 2}`, [idOf(1)])),
  );
  const other = remove('other', [idOf(1)], 'ws_2');
  await settled();
  assert.deepEqual(
    begun.map(({ sessionId }) => sessionId),
    ['busy0', 'other'],
  );
  assert.equal(await outcomes.at(-1), 'unavailable');
  begun.pop()!.open();
  await other;
  for (let removed = 0; removed < 33; removed++) {
    begun.shift()!.open();
    assert.equal(await outcomes[removed], 'removed');
    await settled();
  }
  assert.equal(begun.length, 0);
});

test('in all workspaces together, at most as many removals wait as the limit allows', async (t) => {
  const { begun, remove } = heldFiles(t);
  const outcomes = Array.from({ length: 2 + 256 + 1 }, (_, at) =>
    outcomeOf(remove('s', [idOf(1)], `ws_${at % 20}`)),
  );
  assert.equal(await outcomes.at(-1), 'unavailable');
  let isOver = false;
  const removed = Promise.all(outcomes.slice(0, -1)).then((all) => {
    isOver = true;
    return new Set(all);
  });
  while (!isOver) {
    await settled();
    for (const { open } of begun.splice(0)) open();
  }
  assert.deepEqual(await removed, new Set(['removed']));
});

test('one removal takes as many files as its limit, and leaves those beyond it', async (t) => {
  const { begun, remove, add, has } = heldFiles(t);
  for (const at of [0, MAX_REMOVED_FILES - 1, MAX_REMOVED_FILES]) add('s', idOf(at));
  const removing = remove(
    's',
    Array.from({ length: MAX_REMOVED_FILES + 1 }, (_, at) => idOf(at)),
  );
  await settled();
  begun.shift()!.open();
  await removing;
  assert.deepEqual(
    [0, MAX_REMOVED_FILES - 1, MAX_REMOVED_FILES].map((at) => has('s', idOf(at))),
    [false, false, true],
  );
});
