/** Questions between workers, over their sockets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WorkersChange } from '#src/runtime/homes/cluster.ts';
import { dealSlots, withoutWorker, withWorker } from '#src/runtime/homes/slots.ts';
import { startTwoWorkers } from './two-workers.ts';

test('a question to one worker reaches only that worker, and questions arrive in the order of sending', async (t) => {
  const { peers } = await startTwoWorkers(t, () => []);
  const [first, second] = peers;
  const asked: unknown[] = [];
  second.onAsked('follow-actors', (payload) => void asked.push(payload));
  second.onAsked('count-actors', () => asked.length);
  void first.askOthers('follow-actors', 'a');
  void first.askOthers('follow-actors', 'b');
  assert.equal(await first.ask(1, 'count-actors', null), 2);
  assert.deepEqual(asked, ['a', 'b']);
  assert.equal(await first.ask(1, 'log', null), undefined, 'it has no answer');
  assert.equal(await first.ask(7, 'count-actors', null), undefined, 'there is no such worker');
});

test('a question ends when its worker ends, and subscribers are notified of workers that join and end', async (t) => {
  const { peers } = await startTwoWorkers(t, () => []);
  const [first, second] = peers;
  const changes: WorkersChange[] = [];
  first.onWorkersChanged((change) => void changes.push(change));
  let received = () => {};
  const isAsked = new Promise<void>((resolve) => {
    received = resolve;
  });
  second.onAsked('count-actors', () => {
    received();
    return new Promise(() => {});
  });
  const answer = first.ask(1, 'count-actors', null);
  await isAsked;
  second[Symbol.dispose]();
  assert.equal(await answer, undefined);
  const joined = withWorker(dealSlots([0, 1]), 2);
  first.useTable(joined);
  first.useTable(withoutWorker(joined, 1));
  assert.deepEqual(changes, [
    { joined: [2], gone: [] },
    { joined: [], gone: [1] },
  ]);
});

test('the asking worker gets an error when another worker could not act, and the other worker reports the reason', async (t) => {
  const { peers, faults } = await startTwoWorkers(t, () => []);
  const [first, second] = peers;
  const fault = new Error('it could not be done');
  second.onAsked('identity-changed', () => {
    throw fault;
  });
  second.onAsked('datasource-gone', () => true);
  assert.equal(await first.haveOthersAct('identity-changed', null), false);
  assert.deepEqual(faults, [{ topic: 'identity-changed', error: fault }]);
  assert.deepEqual(await first.askOthers('identity-changed', null), [], 'it has no answer');
  assert.equal(await first.haveOthersAct('datasource-gone', null), true);
  second[Symbol.dispose]();
  assert.equal(
    await first.haveOthersAct('identity-changed', null),
    true,
    'a worker that has ended does nothing',
  );
});
