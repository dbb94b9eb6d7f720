import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import { BOX_VERSION, box, put, startBoxes } from './boxes.ts';

/** The boxes of two workers that share a store; `living` are the workers that have not ended. */
async function twoWorkers(t: TestContext) {
  const { store } = await temporaryStore(t);
  const living = new Set(['first', 'second']);
  const [first, second] = ['first', 'second'].map((own) =>
    startBoxes(t, store, BOX_VERSION, {
      own,
      livesElsewhere: (owner) => owner !== own && living.has(owner),
      owns: () => own === 'first',
    }),
  );
  const fill = async (id: string) => {
    first!.actors.spawn(box(id), { id });
    first!.actors.ask(box(id), put('a cat'));
    await store.durable();
  };
  return { first: first!, second: second!, living, fill, store };
}

test('an actor that owns something in another worker is lost only once that worker has ended', async (t) => {
  const { first, second, living, fill } = await twoWorkers(t);
  await fill('b1');
  const seen = () => {
    const { live, isLost } = second.actors.peek(box('b1'))!;
    return { live, isLost };
  };
  assert.equal(first.actors.peek(box('b1'))?.isLost, false);
  assert.deepEqual(seen(), { live: false, isLost: false });
  living.delete('first');
  assert.deepEqual(seen(), { live: false, isLost: true });
});

test('an actor that its own worker has lost counts as lost there', async (t) => {
  const { first, fill } = await twoWorkers(t);
  await fill('b1');
  first.runtime.stopAll();
  assert.equal(first.actors.peek(box('b1'))?.isLost, true);
});

test('an actor that owns nothing is never lost', async (t) => {
  const { first, second, living, fill, store } = await twoWorkers(t);
  await fill('b1');
  first.actors.ask(box('b1'), { type: 'take' });
  await store.durable();
  living.delete('first');
  first.runtime.stopAll();
  assert.equal(second.actors.peek(box('b1'))?.isLost, false);
});
