import assert from 'node:assert/strict';
import test from 'node:test';
import { enter, type Life, OUTSIDE, World } from './world.ts';

async function happenIn(world: World, main: () => Promise<void>): Promise<World> {
  enter(world);
  await world.run(main);
  return world;
}

test('tasks happen in the order of their times, and promises of a task before the next task', async () => {
  const order: string[] = [];
  const world = new World(1);
  await happenIn(world, async () => {
    world.after(2, () => order.push('late'));
    world.after(1, () => {
      order.push('early');
      void Promise.resolve().then(() => order.push('promise of early'));
    });
    await world.sleep(3);
  });
  assert.deepEqual(order, ['early', 'promise of early', 'late']);
  assert.ok(world.nowMs >= 3);
});

test('nothing of a life happens after its end', async () => {
  const life: Life = { name: 'short', isOver: false };
  let happened = 0;
  const world = new World(1);
  await happenIn(world, async () => {
    world.after(1, () => happened++, life);
    world.after(3, () => happened++, life);
    await world.sleep(2);
    world.end(life);
    world.after(1, () => happened++, life);
    await world.sleep(5);
  });
  assert.equal(happened, 1);
});

test('a world stops for something real: no time passes, and nothing else happens meanwhile', async () => {
  const world = new World(1);
  const order: string[] = [];
  await happenIn(world, async () => {
    world.after(0.1, () => order.push('task'), OUTSIDE);
    const before = world.nowMs;
    await world.stopWorldFor(() => new Promise((resolve) => setTimeout(resolve, 20))); // real time, in which the task must not happen
    order.push('real');
    assert.equal(world.nowMs, before);
    await world.sleep(1);
  });
  assert.deepEqual(order, ['real', 'task']);
  assert.equal(world.realWaits, 0);
});

test('the same seed draws the same world, and another seed another one', () => {
  const drawn = (seed: number) => {
    const { nature, ofServer, ofNet } = new World(seed);
    return JSON.stringify([nature, ofServer.next(), ofNet.next()]);
  };
  assert.equal(drawn(7), drawn(7));
  assert.notEqual(drawn(7), drawn(8));
});

test('an error of a task that nothing caught is a problem of the world', async () => {
  const world = new World(1);
  await happenIn(world, async () => {
    world.after(1, () => {
      throw new Error('oh');
    });
    await world.sleep(2);
  });
  assert.match(world.problems.join(), /an error that nothing caught, in outside: Error: oh/);
});
