import assert from 'node:assert/strict';
import test from 'node:test';
import { enter, type Life, OUTSIDE, World } from '../world/world.ts';
import { Disk, type TextRange, textOf } from './disk.ts';

const ALL: TextRange = {
  start: undefined,
  end: undefined,
  reverse: false,
  limit: Number.POSITIVE_INFINITY,
  exclusiveStart: false,
};

function write(value: string, ...key: string[]): Map<string, Buffer> {
  return new Map([[textOf(key), Buffer.from(value)]]);
}

async function within(seed: number, act: (world: World, disk: Disk) => Promise<void>): Promise<void> {
  const world = new World(seed);
  enter(world);
  await world.run(() => act(world, new Disk()));
  assert.deepEqual(world.problems, []);
}

test('a commit is seen once it is on the disk, and its writer learns of it later', () =>
  within(1, async (world, disk) => {
    const committed = disk.commit(write('1', 'a'), OUTSIDE, 5, 1);
    await world.sleep(4);
    assert.equal(disk.get('a'), undefined);
    await committed;
    assert.equal(disk.get('a')?.toString(), '1');
    assert.ok(world.nowMs >= 6);
  }));

test('a crash keeps a prefix of the commits that were under way', async () => {
  const kept = new Set<number>();
  for (let seed = 1; seed <= 40; seed++)
    await within(seed, async (world, disk) => {
      const life: Life = { name: 'one', isOver: false };
      for (const name of ['a', 'b', 'c']) void disk.commit(write('1', name), life, 1, 1);
      world.end(life);
      await world.sleep(10);
      const names = [...disk.keysBetween(ALL)].join('');
      assert.ok('abc'.startsWith(names), names);
      kept.add(names.length);
    });
  assert.deepEqual([...kept].sort(), [0, 1, 2, 3]);
});

test('the commit of a process that has ended is on the disk at once or never', async () => {
  const kept = new Set<number>();
  for (let seed = 1; seed <= 20; seed++)
    await within(seed, async (world, disk) => {
      const life: Life = { name: 'one', isOver: false };
      for (const name of ['a', 'b']) void disk.commit(write('1', name), life, 5, 1);
      await world.sleep(1);
      world.end(life);
      const atEnd = [...disk.keysBetween(ALL)];
      await world.sleep(20);
      assert.deepEqual([...disk.keysBetween(ALL)], atEnd);
      kept.add(atEnd.length);
    });
  assert.deepEqual([...kept].sort(), [0, 1, 2]);
});

test('ranges go forwards and backwards, without their ends, and stay as they were when they are read', () =>
  within(2, async (_, disk) => {
    for (const name of ['a', 'b', 'c', 'd']) await disk.commit(write('1', 'x', name), OUTSIDE, 1, 1);
    const names = (range: Partial<TextRange>) =>
      [...disk.keysBetween({ ...ALL, ...range })].map((text) => text.split('\0')[1]).join('');
    const [low, high] = [textOf(['x']), textOf(['x', new Uint8Array([0xff])])];
    assert.equal(names({ start: low, end: high }), 'abcd');
    assert.equal(names({ start: textOf(['x', 'b']), end: textOf(['x', 'd']) }), 'bc');
    assert.equal(names({ start: textOf(['x', 'b']), end: high, exclusiveStart: true }), 'cd');
    assert.equal(names({ start: high, end: low, reverse: true, limit: 2 }), 'dc');
    const reading = disk.keysBetween(ALL);
    reading.next();
    await disk.commit(new Map([[textOf(['x', 'b']), undefined]]), OUTSIDE, 1, 1);
    assert.equal([...reading].length, 3);
    assert.equal(names({}), 'acd');
  }));

test('a commit to a full disk fails and leaves nothing, and the next commit succeeds once there is space', () =>
  within(2, async (_world, disk) => {
    disk.setTrouble('full', true);
    await assert.rejects(disk.commit(write('1', 'a'), OUTSIDE, 1, 1), { code: 'ENOSPC' });
    assert.equal(disk.get('a'), undefined);
    disk.setTrouble(undefined);
    await disk.commit(write('2', 'a'), OUTSIDE, 1, 1);
    assert.equal(disk.get('a')?.toString(), '2');
  }));

test('an input/output error befalls one commit', () =>
  within(3, async (_world, disk) => {
    disk.setTrouble('broken');
    await assert.rejects(disk.commit(write('1', 'a'), OUTSIDE, 1, 1), { code: 'EIO' });
    assert.equal(disk.trouble, undefined);
  }));

test('processes commit one after the other, and a decision reads every commit before its own', () =>
  within(4, async (world, disk) => {
    const lives: Life[] = ['one', 'two', 'three'].map((name) => ({ name, isOver: false }));
    const counted = (life: Life) => {
      const next = () => write(String(Number(disk.get('a') ?? 0) + 1), 'a');
      return disk.decide(next, life, 1, 1);
    };
    await Promise.all(
      lives.flatMap((life) => [counted(life), disk.commit(write('1', life.name), life, 1, 1)]),
    );
    assert.equal(disk.get('a')?.toString(), '3');
    assert.ok(world.nowMs >= 6);
  }));

test('a process that is killed while another one commits leaves nothing of its own commit', () =>
  within(5, async (world, disk) => {
    const life: Life = { name: 'killed', isOver: false };
    void disk.commit(write('1', 'a'), OUTSIDE, 5, 1);
    void disk.commit(write('1', 'b'), life, 1, 1);
    world.end(life);
    await disk.commit(write('1', 'c'), OUTSIDE, 1, 1);
    assert.deepEqual([...disk.keysBetween(ALL)], ['a', 'c']);
  }));

test('a store that is opened during a commit loses it with the next commit', () =>
  within(6, async (_world, disk) => {
    const committed = disk.commit(write('1', 'a'), OUTSIDE, 1, 1);
    disk.opened({ name: 'another', isOver: false });
    await committed;
    assert.equal(disk.get('a')?.toString(), '1');
    await disk.commit(write('1', 'b'), OUTSIDE, 1, 1);
    assert.deepEqual([...disk.keysBetween(ALL)], ['b']);
  }));
