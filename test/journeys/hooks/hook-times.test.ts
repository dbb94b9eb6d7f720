/** Deliveries that fail for long: when one lets others pass, and when it is given up. Only what `Date` says is set. */
// own process: it sets the clock
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { Delivery } from '#src/contract/wire/hook.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { hookReceiver, TAKEN } from '#test/support/stand-ins/hook-receiver.ts';

const server = await startServer(test, { TROUPE_WORKERS: '1' });
const { hooks } = server.client;

const DAY_MS = 24 * 3_600_000;
/** The shortest pause after the second attempt. */
const SECOND_PAUSE_MS = 7_500;

test('a delivery that has failed four times lets the later ones pass, and is sent again at its own times', async (t) => {
  let refused: string | undefined;
  const receiver = await hookReceiver(t, (response, { id }) => {
    refused ??= id;
    response.writeHead(id === refused ? 500 : 204).end();
  });
  const { id: hookId } = await hooks.create({ url: receiver.url, events: ['run.failed'] });
  const first = await hooks.test(hookId);
  await attempted(first, 1);
  const second = await hooks.test(hookId);
  for (const attempt of [2, 3]) {
    await resume(hookId);
    await attempted(first, attempt);
    assert.deepEqual([(await deliveryOf(second)).attempts, (await hooks.get(hookId)).pending], [0, 2]);
  }
  await resume(hookId);
  const aside = await attempted(first, 4);
  assert.equal(aside.status, 'pending');
  await eventually(
    'the second one has arrived',
    async () => (await deliveryOf(second)).status === 'delivered',
  );
  const third = await hooks.test(hookId);
  await eventually('the third one has arrived', async () => (await deliveryOf(third)).status === 'delivered');
  assert.deepEqual(
    receiver.received.map(({ id }) => id),
    [first.id, first.id, first.id, first.id, second.id, third.id],
  );
  assert.deepEqual([(await deliveryOf(first)).attempts, (await hooks.get(hookId)).pending], [4, 1]);

  receiver.answer(TAKEN);
  setClock(t, Date.parse(aside.nextAttemptAt ?? ''));
  await resume(hookId);
  await eventually('the first one has arrived', async () => (await deliveryOf(first)).status === 'delivered');
  assert.deepEqual([(await deliveryOf(first)).attempts, (await hooks.get(hookId)).pending], [5, 0]);
  await hooks.delete(hookId);
});

test('a delivery whose next attempt would be more than 24 hours after it was queued is dead, with its last failure', async (t) => {
  t.mock.method(Math, 'random', () => 0); // each pause is the shortest one
  for (const [lateMs, status] of [
    [0, 'pending'],
    [1, 'dead'],
  ] as const) {
    const receiver = await hookReceiver(t, (response) => response.writeHead(503).end('closed'));
    const { id: hookId } = await hooks.create({ url: receiver.url, events: ['run.failed'] });
    const queued = await hooks.test(hookId);
    await attempted(queued, 1);
    setClock(t, Date.parse(queued.queuedAt) + DAY_MS - SECOND_PAUSE_MS + lateMs);
    await resume(hookId);
    const last = await eventually('the second attempt is over', async () => {
      const delivery = await deliveryOf(queued);
      const isOver = delivery.nextAttemptAt !== null || delivery.finishedAt !== null;
      return delivery.attempts === 2 && isOver && delivery;
    });
    assert.deepEqual(
      [last.status, last.responseStatus, last.response, last.reason?.code],
      [status, 503, 'closed', 'http_status'],
    );
    assert.equal((await hooks.get(hookId)).pending, status === 'pending' ? 1 : 0);
    await hooks.delete(hookId);
  }
});

/** Sets the time of `Date`, which stands still from then on. */
function setClock(t: TestContext, now: number): void {
  t.mock.timers.reset();
  t.mock.timers.enable({ apis: ['Date'], now });
}

/** Has the delivery that waits attempted at once. */
async function resume(hookId: string): Promise<void> {
  for (const paused of [true, false]) {
    const { updatedAt: expectedUpdatedAt } = await hooks.get(hookId);
    await hooks.update(hookId, { expectedUpdatedAt, paused });
  }
}

/** Resolves with the delivery once this attempt has failed. */
async function attempted(delivery: Delivery, attempts: number): Promise<Delivery> {
  return eventually(`attempt ${attempts} is over`, async () => {
    const now = await deliveryOf(delivery);
    return now.attempts === attempts && now.nextAttemptAt !== null && now;
  });
}

async function deliveryOf({ hookId, id }: Pick<Delivery, 'hookId' | 'id'>): Promise<Delivery> {
  const found = (await hooks.deliveries(hookId)).items.find((one) => one.id === id);
  assert(found !== undefined);
  return found;
}
