import assert from 'node:assert/strict';
import test from 'node:test';
import { encode } from '@msgpack/msgpack';
import { atOnce } from '#src/base/async/slices.ts';
import { checksumOf, checksumWith, computeChecksum, rememberChecksum } from '#src/base/text/checksum.ts';
import {
  DamagedRecord,
  decodeRecord,
  defineRecord,
  encodeRecord,
  encodeRecordOfParts,
} from '#storage/codec.ts';

interface Pet {
  readonly name: string;
  readonly legs: number;
}
const first = defineRecord<{ name: string }>('pet', 1);
const third = defineRecord<Pet>('pet', 3, (value, version) => {
  const { name } = value as { name: string };
  return { name: `${name} of version ${version}`, legs: 4 };
});

/** Returns the bytes with the head that makes them a record. */
function withChecksum(body: Uint8Array): Uint8Array {
  const record = Buffer.concat([Buffer.from([0xc1, 0, 0, 0, 0]), body]);
  record.writeUInt32LE(checksumOf(body), 1);
  return record;
}

test('a record is read as it was written, including bytes', () => {
  const bytes = new Uint8Array([0, 255, 7]);
  const kind = defineRecord<unknown>('thing', 2);
  const value = { text: 'é😀', list: [1, null, true], bytes, nested: { empty: {} } };
  const read = decodeRecord(kind, encodeRecord(kind, value));
  assert.deepEqual(read, value);
});

test('large bytes are written in the form of MessagePack, together with any other members', () => {
  const kind = defineRecord<unknown>('thing', 2);
  for (const size of [256 * 1024, 256 * 1024 + 1, 3_000_000]) {
    const bytes = Uint8Array.from({ length: size }, (_, i) => i % 251);
    for (const value of [bytes, { bytes }, { first: bytes, text: 'é', second: bytes, none: undefined }]) {
      const record = encodeRecord(kind, value);
      assert.deepEqual(decodeRecord(kind, record), withoutUndefined(value));
      if (value === bytes) assert.ok(Buffer.from(encode([2, bytes])).equals(record.subarray(5)));
    }
  }
});

test('a record written in parts equals the record of the joined bytes', () => {
  const kind = defineRecord<{ name: string; bytes: Uint8Array }>('thing', 2);
  const bytes = Uint8Array.from({ length: 3_000_000 }, (_, i) => i % 251);
  const parts = [bytes.subarray(0, 10), bytes.subarray(10, 2_500_000), bytes.subarray(2_500_000)];
  let steps = 0;
  const encoding = encodeRecordOfParts(kind, { name: 'é', bytes: new Uint8Array() }, 'bytes', parts);
  let step = encoding.next();
  for (; step.done !== true; step = encoding.next()) steps++;
  assert.ok(steps > 5);
  assert.ok(Buffer.from(encodeRecord(kind, { name: 'é', bytes })).equals(step.value));
  assert.ok(Buffer.from(bytes).equals(step.value.subarray(-bytes.length)));
});

function withoutUndefined(value: object): object {
  if (value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
}

test('an undefined member is left out', () => {
  const kind = defineRecord<unknown>('thing', 1);
  assert.deepEqual(decodeRecord(kind, encodeRecord(kind, { a: undefined, b: 1 })), { b: 1 });
});

test('upgrading a record of an older version gives it the present version', () => {
  assert.deepEqual(decodeRecord(third, encodeRecord(first, { name: 'Tom' })), {
    name: 'Tom of version 1',
    legs: 4,
  });
});

test('a record of the present version is not upgraded', () => {
  const tom = { name: 'Tom', legs: 3 };
  assert.deepEqual(decodeRecord(third, encodeRecord(third, tom)), tom);
});

test('a record of a newer version is refused, and the error names the version that this release reads', () => {
  assert.throws(() => decodeRecord(first, encodeRecord(third, { name: 'Tom', legs: 4 })), {
    message: 'A stored pet has version 3; this release reads up to 1.',
  });
});

test('an older record without an upgrade is refused', () => {
  assert.throws(
    () => decodeRecord(defineRecord('pet', 2), encodeRecord(first, { name: 'Tom' })),
    /version 1/,
  );
});

test('bytes that are not a record are reported as damage', () => {
  for (const damage of [encode({ name: 'Tom' }), encode(['1', {}]), encode([])]) {
    assert.throws(() => decodeRecord(first, withChecksum(damage)), {
      message: 'A stored pet is damaged: it has no version.',
    });
  }
});

test('a record with any byte flipped is damaged, and so is a truncated one', () => {
  const whole = encodeRecord(first, { name: 'Tom Kitten' });
  assert.deepEqual(decodeRecord(first, whole), { name: 'Tom Kitten' });
  for (let at = 0; at < whole.length; at++) {
    const flipped = Buffer.from(whole);
    flipped[at]! ^= 0x10;
    assert.throws(() => decodeRecord(first, flipped), DamagedRecord, `byte ${at}`);
    assert.throws(() => decodeRecord(first, whole.subarray(0, at)), DamagedRecord, `${at} bytes`);
  }
});

test('bytes without a checksum are reported as damage', () => {
  for (const bytes of [
    encode([1, { name: 'Tom' }]),
    Buffer.alloc(0),
    encodeRecord(first, { name: 'Tom' }).subarray(0, 4),
  ])
    assert.throws(() => decodeRecord(first, bytes), {
      message: 'A stored pet is damaged: it has no checksum.',
    });
});

test('both ways to compute the checksum give the same result as zlib', () => {
  const text = Buffer.from('123456789');
  assert.deepEqual([checksumOf(text), computeChecksum(text)], [0xcbf43926, 0xcbf43926]);
});

test('the checksum of two joined byte strings is computed from the remembered checksum of the second one, for any length', () => {
  for (const length of [0, 1, 2, 7, 255, 256, 32_768, 33_001, 2 ** 20 + 3]) {
    const bytes = Buffer.alloc(length, 'a "text" of no pattern that repeats with the table');
    const expected = checksumOf(bytes, checksumOf(Buffer.from('before')));
    rememberChecksum(bytes);
    assert.equal(checksumWith(checksumOf(Buffer.from('before')), bytes), expected, `${length} bytes`);
    assert.equal(checksumWith(0, bytes), checksumOf(bytes), `${length} bytes at the beginning`);
  }
});

test('a record of parts with remembered checksums is read like any other', () => {
  const parts = [Buffer.alloc(40_000, 'x'), Buffer.from('short'), Buffer.alloc(300_000, 'y')];
  for (const part of parts) rememberChecksum(part);
  const kind = defineRecord<{ name: string; bytes: Uint8Array }>('file', 1);
  const record = atOnce(encodeRecordOfParts(kind, { name: 'Tom', bytes: new Uint8Array() }, 'bytes', parts));
  assert.deepEqual(Buffer.from(decodeRecord(kind, record).bytes), Buffer.concat(parts));
});
