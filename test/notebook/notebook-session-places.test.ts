import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { timeText, type WorkspaceId } from '#src/core/ids.ts';
import { NotebookSessionPlaces } from '#src/notebook/notebook-session-places.ts';
import { openSharedStore } from '#storage/open-store.ts';
import { sessionPlaces } from '#storage/sessions.ts';
import { temporaryStore } from '#test/support/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const HOUR_MS = 3_600_000;

/** The places as two workers write them, each with a store of its own on the same files. */
async function twoWorkers(t: TestContext) {
  const { path } = await temporaryStore(t);
  const open = async () => {
    const store = await openSharedStore(path, assert.fail, async () => undefined);
    t.after(() => store[Symbol.asyncDispose]());
    return { store, places: new NotebookSessionPlaces(store) };
  };
  return [await open(), await open()] as const;
}

test('a session is opened later than all that are committed, also by a worker whose clock is ahead', async (t) => {
  const [{ store, places }] = await twoWorkers(t);
  const aheadMs = Date.now() + HOUR_MS;
  store.write((tx) => tx.put(sessionPlaces, null, WORKSPACE, `${timeText(aheadMs)}nb_zzz`));
  await store.durable();
  const [first, second] = [places.timeOfOpening(WORKSPACE), places.timeOfOpening(WORKSPACE)];
  assert.ok(Date.parse(first) > aheadMs, first);
  assert.ok(second > first, 'those that are decided before the next commit are in order as well');
});

test('a reader who follows the list of sessions misses none that two workers open', async (t) => {
  const workers = await twoWorkers(t);
  const [{ store: reader }] = workers;
  let isOver = false;
  const opening = Promise.all(
    workers.map(async ({ store, places }, worker) => {
      for (let n = 0; n < 100; n++) {
        // Ids decrease, so a time that two sessions share would bring them into another order than that of their commits.
        const id = `nb_${worker}_${1000 - n}`;
        store.decide(() => places.open(WORKSPACE, id, places.timeOfOpening(WORKSPACE), null));
        if (n % 3 === 0) await store.durable();
      }
      await store.durable();
    }),
  ).finally(() => {
    isOver = true;
  });
  const walked: string[] = [];
  const walk = () => {
    reader.refresh();
    const page = { after: walked.at(-1), limit: 1000 };
    for (const { id } of reader.list(sessionPlaces, WORKSPACE, [], page)) walked.push(id);
  };
  while (!isOver) {
    walk();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await opening;
  walk();
  assert.equal(walked.length, 200);
});
