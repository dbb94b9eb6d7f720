import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { defineRecord } from '#storage/codec.ts';
import { isDiskFull } from '#storage/commit-failure.ts';
import { type RoomState, StoreRoom } from '#storage/disk/store-room.ts';
import { openStore } from '#storage/open-store.ts';
import { eventually } from '#test/support/processes.ts';
import { fillDisk, noSmallDisk, smallDisk } from '#test/support/store/small-disk.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const MIB = 1024 * 1024;
const things = defineRecord<Uint8Array>('thing', 1);

/** A store on a disk of 24 MiB, of which `reserveMb` are set aside, with so many inodes. */
async function open(t: TestContext, reserveMb: number, inodes?: number) {
  const disk = smallDisk(t, 24, inodes);
  const fatal: Error[] = [];
  const path = join(disk, 'store');
  const store = await openStore(path, (error) => fatal.push(error));
  const changes = new EventEmitter();
  const states: RoomState[] = [];
  const room = await StoreRoom.open({
    store,
    path,
    reserveBytes: reserveMb * MIB,
    warnBytes: 2 * MIB,
    onChange(state) {
      states.push(state);
      changes.emit('change', state);
    },
  });
  let isOpen = true;
  const close = async () => {
    if (!isOpen) return;
    isOpen = false;
    room[Symbol.dispose]();
    await store[Symbol.asyncDispose]();
  };
  t.after(close);
  const isBusy = setInterval(() => undefined, 1000); // the watch over the disk keeps no process alive
  t.after(() => clearInterval(isBusy));
  const put = async (id: string, bytes: number) => {
    store.write((tx) => tx.put(things, Buffer.alloc(bytes, id), 'ws_1', id));
    await store.durable();
  };
  const until = async (accepts: (state: RoomState) => boolean) => {
    while (!accepts(room.state)) await once(changes, 'change');
  };
  return { disk, path, store, room, states, put, until, close };
}

test('free disk space is measured once a second, and only when the disk is not far from full', async (t) => {
  const periods = t.mock.method(globalThis, 'setInterval');
  const lastMs = () => periods.mock.calls.at(-1)?.arguments[1];
  const { path, store } = await temporaryStore(t);
  const openRoom = (warnBytes: number) =>
    StoreRoom.open({ store, path, reserveBytes: 0, warnBytes, onChange: () => undefined });
  for (const [warnBytes, expectedMs] of [
    [0, 10_000],
    [Number.MAX_SAFE_INTEGER, 1_000],
  ] as const) {
    using _room = await openRoom(warnBytes);
    assert.equal(lastMs(), expectedMs);
  }
});

test('a full disk leaves the store its reserve, and nothing new is accepted until there is space', {
  skip: noSmallDisk,
}, async (t) => {
  const { disk, store, room, put, until } = await open(t, 8);
  assert.deepEqual([room.state.level, room.isFull], ['ample', false]);
  const everything = fillDisk(disk);
  for (let n = 0; n < 30; n++) await put(`t${n}`, 100_000); // work that has begun has room
  await until(({ level }) => level === 'full');
  assert.equal(store.isFull, true);
  assert.equal(room.state.stalled, false);
  room.look();
  assert.ok(room.state.reservedBytes > 2 * MIB && room.state.reservedBytes < 6 * MIB);
  rmSync(everything);
  await until(({ level }) => level === 'ample');
  room.look();
  await put('after', 100_000);
  assert.equal(store.isFull, false);
});

test('a reserve larger than the disk takes half of the disk', { skip: noSmallDisk }, async (t) => {
  const { room, put } = await open(t, 1024 * 1024);
  const { level, freeBytes, reservedBytes } = room.look();
  assert.equal(level, 'ample');
  assert.ok(reservedBytes > 10 * MIB && freeBytes > 10 * MIB, `${reservedBytes} and ${freeBytes} bytes`);
  await put('t', 100_000);
});

test('a commit without room waits for space, and no later one overtakes it', {
  skip: noSmallDisk,
}, async (t) => {
  const { disk, path, store, put, until, close } = await open(t, 1);
  const everything = fillDisk(disk);
  const settled: string[] = [];
  const large = put('large', 4 * MIB).then(() => settled.push('large'));
  const small = put('small', 100).then(() => settled.push('small'));
  await until(({ stalled }) => stalled);
  store.write((tx) => tx.put(things, Buffer.from('newer'), 'ws_1', 'large'));
  assert.deepEqual([settled, Buffer.from(store.get(things, 'ws_1', 'large')!).toString()], [[], 'newer']);
  rmSync(everything);
  await Promise.all([large, small, store.durable()]);
  assert.deepEqual(settled, ['large', 'small']);
  await until(({ level, stalled }) => level === 'ample' && !stalled);
  await close();
  const again = await openStore(path, assert.fail);
  t.after(() => again[Symbol.asyncDispose]());
  assert.equal(Buffer.from(again.get(things, 'ws_1', 'large')!).toString(), 'newer');
  assert.equal(again.get(things, 'ws_1', 'small')!.byteLength, 100);
});

test('a commit that waits for space is reported as one change of state, however often it is tried', {
  skip: noSmallDisk,
}, async (t) => {
  const { disk, room, states, put, until } = await open(t, 1);
  const everything = fillDisk(disk);
  const large = put('large', 4 * MIB);
  await until(({ stalled }) => stalled);
  const tries = t.mock.method(room, 'claim');
  const before = states.length;
  await eventually('the store was tried again', () => tries.mock.callCount() >= 4);
  const changes = states.slice(before);
  rmSync(everything);
  await large;
  await until(({ level, stalled }) => level === 'ample' && !stalled);
  assert.deepEqual(changes, []);
});

test('deletions make room within the store, so writes are accepted again even though the disk is still full', {
  skip: noSmallDisk,
}, async (t) => {
  const { disk, store, room, put } = await open(t, 4);
  for (let n = 0; n < 120; n++) await put(`t${n}`, 100_000);
  fillDisk(disk);
  for (let n = 0; !room.isFull; n++) await put(`more${n}`, 50_000);
  for (let n = 0; n < 120; n++) {
    store.write((tx) => tx.remove(things, 'ws_1', `t${n}`));
    await store.durable();
  }
  room.look();
  assert.equal(room.state.level, 'low');
  assert.ok(room.state.freeBytes < MIB);
});

test('a disk with room for few more files is reported although it has space, until files are deleted', {
  skip: noSmallDisk,
}, async (t) => {
  const { disk, room, states } = await open(t, 1, 1100);
  assert.equal(room.state.fewInodes, undefined);
  const folder = join(disk, 'many');
  mkdirSync(folder);
  for (let n = 0; n < 200; n++) writeFileSync(join(folder, `${n}`), '');
  const { level, fewInodes = 0 } = room.look();
  assert.ok(level === 'ample' && fewInodes > 0 && fewInodes < 1000, `${level} ${fewInodes}`);
  rmSync(folder, { recursive: true });
  assert.equal(room.look().fewInodes, undefined);
  assert.deepEqual(
    states.map(({ fewInodes: few }) => few !== undefined),
    [true, false],
  );
});

test('a failure other than missing space ends the store', { skip: noSmallDisk }, async (t) => {
  const { room } = await open(t, 1);
  assert.equal(room.waitAfter(Object.assign(new Error('Read-only file system'), { code: 30 })), undefined);
  const failed = Object.assign(new Error('Input/output error'), { code: 5 });
  assert.deepEqual([isDiskFull(failed, 1024 * MIB), isDiskFull(failed, 0)], [false, true]);
});
