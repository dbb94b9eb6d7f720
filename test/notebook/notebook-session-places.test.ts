import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { timeText, type WorkspaceId } from '#src/base/ids.ts';
import { NotebookSessionPlaces } from '#src/notebook/sessions/notebook-session-places.ts';
import { sessionPlaces } from '#storage/records/sessions.ts';
import { sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const HOUR_MS = 3_600_000;

/** The places as two workers write them, each with a store of its own on the same files. */
async function twoWorkers(t: TestContext) {
  const { path } = await temporaryStore(t);
  const open = async () => {
    const store = await sharedStore(t, path);
    return { store, places: new NotebookSessionPlaces(store) };
  };
  return [await open(), await open()] as const;
}

test("an opened session is listed after all committed sessions, even if another worker's clock is ahead", async (t) => {
  const [{ store, places }] = await twoWorkers(t);
  const aheadMs = Date.now() + HOUR_MS;
  store.write((tx) => tx.put(sessionPlaces, null, WORKSPACE, `${timeText(aheadMs)}nb_zzz`));
  await store.durable();
  const [first, second] = [places.timeOfOpening(WORKSPACE), places.timeOfOpening(WORKSPACE)];
  assert.ok(Date.parse(first) > aheadMs, first);
  assert.ok(second > first, 'those that are decided before the next commit are in order as well');
});

test('paging the sessions misses no session that two workers open in one millisecond', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const workers = await twoWorkers(t);
  const [{ store: reader }] = workers;
  const walked: string[] = [];
  for (let n = 0; n < 10; n++) {
    // Ids decrease, so if two sessions had the same time, their order would differ from the order
    // of their commits.
    const id = `nb_${99 - n}`;
    const { store, places } = workers[n % 2]!;
    store.decide(() => places.open(WORKSPACE, id, places.timeOfOpening(WORKSPACE), null));
    await store.durable();
    reader.refresh();
    const page = { after: walked.at(-1), limit: 10 };
    for (const place of reader.list(sessionPlaces, WORKSPACE, [], page)) walked.push(place.id);
    assert.equal(walked.length, n + 1);
    assert.ok(walked.at(-1)?.endsWith(id));
  }
});
