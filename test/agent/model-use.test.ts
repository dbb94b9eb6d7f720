import assert from 'node:assert/strict';
import test from 'node:test';
import { ModelUse } from '#src/agent/model-use.ts';
import type { CallUsage } from '#src/agent/models/call-meter.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { ModelUsage } from '#src/contract/wire/usage.ts';
import { modelUse } from '#storage/records/model-use.ts';
import { addWorkspaces, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const CALL: CallUsage = {
  ...{ inputTokens: 50, cachedInputTokens: 30, cacheWriteInputTokens: 4 },
  ...{ outputTokens: 6, reasoningTokens: 1, isEstimated: false },
};
const short = ({ day, userId, model, calls }: ModelUsage) => [day, userId, model, calls];

test('a call is added in the commit of its turn, and the counts of several workers are shown as one sum', async (t) => {
  const { store } = await temporaryStore(t);
  let flushes = 0;
  store.onFlushed(() => flushes++);
  const [one, two] = [new ModelUse(store, 1), new ModelUse(store, 12)];
  addWorkspaces(store, 'ws_2'); // another write of the turn
  one.add(WORKSPACE, 'ada', 'local/m', CALL);
  one.add(WORKSPACE, 'ada', 'local/m', { ...CALL, isEstimated: true });
  await store.durable();
  assert.equal(flushes, 1);
  two.add(WORKSPACE, 'ada', 'local/m', CALL);
  await store.durable();
  assert.equal([...store.listKeys(modelUse, WORKSPACE, [], 10)].length, 2);
  const { to, items, nextCursor } = two.page(WORKSPACE, { limit: 10 });
  assert.deepEqual(items, [
    {
      ...{ day: to, userId: 'ada', model: 'local/m', inputTokens: 150, outputTokens: 18 },
      ...{ cacheReadTokens: 90, cacheWriteTokens: 12, calls: 3, estimatedCalls: 1 },
    },
  ]);
  assert.equal(nextCursor, null);
});

test('each page of sums continues after the last sum of the previous page, across days, users and models', async (t) => {
  const { store } = await temporaryStore(t);
  const use = new ModelUse(store, 0);
  const expected: unknown[] = [];
  let today = '';
  t.mock.method(Date, 'now', () => Date.parse(today));
  for (const day of ['2030-01-01', '2030-01-02', '2030-01-03']) {
    today = day;
    for (const userId of ['ada', 'ada@b', 'bob'])
      for (const model of ['local/m', 'openai/m']) {
        use.add(WORKSPACE, userId, model, CALL);
        expected.push([day, userId, model, 1]);
      }
  }
  today = '2030-01-02';
  await store.durable();
  const walk = (limit: number, userId?: string) => {
    const found: unknown[] = [];
    for (let after: string | undefined, isOver = false; !isOver; isOver = after === undefined) {
      const { items, nextCursor } = use.page(WORKSPACE, { limit, after, to: '2030-01-03' }, userId);
      found.push(...items.map(short));
      after = nextCursor ?? undefined;
    }
    return found;
  };
  for (const limit of [1, 2, 5, 18, 100]) {
    assert.deepEqual(walk(limit), expected);
    const ofAda = expected.filter((sum) => (sum as string[])[1] === 'ada');
    assert.deepEqual(walk(limit, 'ada'), ofAda, 'none of the user whose name begins in the same way');
  }
  assert.deepEqual(
    use.page(WORKSPACE, { limit: 100, from: '2030-01-02' }).items.map(short),
    expected.slice(6, 12),
    'the last day is today',
  );
});

test('the sums of one user are read without the sums of others', async (t) => {
  const { store } = await temporaryStore(t);
  const use = new ModelUse(store, 0);
  for (let n = 0; n < 500; n++) use.add(WORKSPACE, `user-${n}`, 'local/m', CALL);
  await store.durable();
  let read = 0;
  const listAfter = store.listAfter.bind(store);
  t.mock.method(store, 'listAfter', function* (...args: Parameters<typeof listAfter>) {
    for (const part of listAfter(...args)) {
      read++;
      yield part;
    }
  });
  assert.equal(use.page(WORKSPACE, { limit: 10 }, 'user-400').items.length, 1);
  assert.equal(read, 1);
  assert.equal(use.page(WORKSPACE, { limit: 10 }).items.length, 10);
  assert.ok(read <= 13, `${read} records`);
});
