/**
 * Another process that has the store of its first argument open, as a worker has. Its second argument names its task:
 *
 *   put <id>          writes a record and ends
 *   read              begins to read a range, prints `reading`, and stays in it
 *   fill <reserve>    writes records with the room of two workers; prints the id of each that is on disk, and `stalled` when a
 *                     commit waits for space. The record of that commit is the last one, so that space is left for others
 *   hold              takes the write lock, prints `holding`, and keeps it until it is killed
 *   count <times>     adds one to a number in shared turns, some of them together, and prints `counted`
 */
import { writeSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { defineRecord } from '#storage/codec.ts';
import { StoreRoom } from '#storage/disk/store-room.ts';
import { openSharedStore } from '#storage/open-store.ts';
import type { Store } from '#storage/store.ts';

const MIB = 1024 * 1024;
export const VALUE_BYTES = 50_000;
export const sharedThings = defineRecord<Uint8Array>('thing', 1);
export const sharedNumbers = defineRecord<number>('number', 1);
const AT_ONCE = 5;

const [, , path, task, argument = ''] = process.argv;
if (path !== undefined && task !== undefined) await work(path);

async function work(path: string): Promise<void> {
  let hasStalled = false;
  const prepare = async (store: Store) => {
    if (task !== 'fill') return;
    await StoreRoom.open({
      store,
      path,
      reserveBytes: Number(argument) * MIB,
      warnBytes: 2 * MIB,
      workers: 2,
      onChange({ stalled }) {
        if (!stalled) return;
        hasStalled = true;
        process.stdout.write('stalled\n');
      },
    });
  };
  const fail = (error: Error) => {
    throw error;
  };
  const store = await openSharedStore(path, fail, prepare);
  if (task === 'put') await put(store, argument, 10);
  else if (task === 'count') await count(store, Number(argument));
  else if (task === 'hold') hold(store);
  else if (task === 'read') {
    store.list(sharedThings, 'ws_1', [], { limit: 10 }).next();
    process.stdout.write('reading\n');
    setInterval(() => undefined, 1000);
    return; // in the range: closing the store would end it
  } else {
    setInterval(() => undefined, 1000);
    for (let n = 0; !hasStalled; n++) {
      const id = `${process.pid}-${n}`;
      await put(store, id, VALUE_BYTES);
      process.stdout.write(`${id}\n`);
      await nextTurn();
    }
    return; // the test kills it
  }
  await store[Symbol.asyncDispose]();
}

async function put(store: Store, id: string, bytes: number): Promise<void> {
  store.write((tx) => tx.put(sharedThings, Buffer.alloc(bytes, id), 'ws_1', id));
  await store.durable();
}

function hold(store: Store): void {
  store.decide(() => {
    writeSync(1, 'holding\n');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
}

async function count(store: Store, times: number): Promise<void> {
  const addOne = () => {
    const number = store.get(sharedNumbers, 'ws_1', 'n') ?? 0;
    store.write((tx) => tx.put(sharedNumbers, number + 1, 'ws_1', 'n'));
  };
  for (let n = 0; n < times; n += AT_ONCE) {
    for (let i = 0; i < AT_ONCE; i++) store.decide(addOne);
    await store.durable();
  }
  process.stdout.write('counted\n');
}
