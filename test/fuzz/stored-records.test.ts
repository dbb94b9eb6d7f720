// tier: whole, because it makes random or hostile input
/**
 * Records that a disk has damaged, made from a seed: each is read, or rejected with an error that
 * names it.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeRecord, defineRecord, encodeRecord } from '#storage/codec.ts';
import { SeededRandom } from '#test/support/random.ts';
import { mutated } from './odd-values.ts';

const SEED = Number(process.env.FUZZ_SEED ?? 8);
const RECORDS = Number(process.env.FUZZ_RECORDS ?? 20_000);

const kind = defineRecord<unknown>('thing', 3, (value, version) => [version, value]);
const RECORD = {
  id: 'run_1',
  status: 'running',
  cells: [{ cellId: 'a', code: 'x = 1\n'.repeat(20), stale: true, durationMs: 1.25 }],
  bytes: new Uint8Array(40),
  error: null,
  count: 2 ** 40,
};

test(`${RECORDS} damaged records of seed ${SEED} are read, or rejected with their names`, () => {
  const random = new SeededRandom(SEED);
  let refused = 0;
  for (let count = 0; count < RECORDS; count++) {
    const whole = encodeRecord(kind, random.is(0.5) ? RECORD : mutated(random, RECORD));
    const bytes = Buffer.from(whole.subarray(0, random.is(0.3) ? random.below(whole.length) : whole.length));
    for (let flips = random.below(5); flips > 0 && bytes.length > 0; flips--)
      bytes[random.below(random.is(0.5) ? Math.min(8, bytes.length) : bytes.length)] = random.below(256);
    try {
      decodeRecord(kind, bytes);
    } catch (error) {
      refused++;
      assert.match(String(error), /^(Error|DamagedRecord): A stored thing (is damaged|has version)/);
    }
  }
  assert.ok(refused > RECORDS / 10 && refused < RECORDS);
});

test('a record that claims a huge size is rejected before memory is allocated', () => {
  for (const claim of [
    [0xdd, 255, 255, 255, 255],
    [0xdf, 255, 255, 255, 255],
    [0xc6, 255, 255, 255, 255],
    [0xdb, 255, 255, 255, 255],
  ])
    assert.throws(
      () => decodeRecord(kind, Uint8Array.from([0x92, 3, ...claim])),
      /A stored thing is damaged/,
    );
  const deep = Buffer.alloc(2_000_000, 0x91);
  assert.throws(
    () => decodeRecord(kind, Buffer.concat([Buffer.from([0x92, 3]), deep])),
    /A stored thing is damaged/,
  );
});
