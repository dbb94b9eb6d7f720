// tier: whole, because it kills processes that write
import assert from 'node:assert/strict';
import test from 'node:test';
import { openStore } from '#storage/open-store.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import { WORKSPACE } from '#test/runtime/actors/boxes.ts';
import { childScript } from '#test/support/store/child-script.ts';
import { PAIRS, pairRecords } from '#test/support/store/pairs.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const SEEDS = 20;

test('a server killed at any moment keeps each turn either whole or not at all, and keeps every durable turn', async (t) => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const path = temporaryDirectory(t);
    const child = childScript(t, 'pair-writer', path);
    let durable = 0;
    const turns = 1 + ((seed * 7) % 20);
    for (let i = 0; i < turns; i++) durable = Number(await child.line());
    await child.kill(); // the process has run on meanwhile, so the kill comes anywhere within a turn
    const store = await openStore(path, assert.fail);
    const things = ['left', 'right'].map((id) => {
      const { context } = store.get(actorSnapshots, WORKSPACE, 'box', id)!;
      return Number((context as { thing: string }).thing);
    });
    const records = [...store.list(pairRecords, WORKSPACE, [], { limit: 1_000 })].map(({ value }) => value);
    await store[Symbol.asyncDispose]();
    const [found] = things;
    assert.deepEqual([...things, ...records], Array(2 + PAIRS).fill(found), `seed ${seed}`);
    assert.ok(found! >= durable, `seed ${seed}: ${durable} was durable, ${found} is there`);
  }
});
