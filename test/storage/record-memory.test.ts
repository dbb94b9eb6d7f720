import assert from 'node:assert/strict';
import test from 'node:test';
import { recordMemory, reserveMemory } from '#storage/record-memory.ts';

const MIB = 1024 * 1024;

test('a large record uses the memory reserved for it, and only once', async () => {
  using _reserved = await reserveMemory(4 * MIB);
  const first = recordMemory(4 * MIB);
  assert.ok(first.buffer.byteLength > 4 * MIB && first.byteLength === 4 * MIB);
  const second = recordMemory(4 * MIB);
  assert.notEqual(second.buffer, first.buffer);
  assert.equal(second.byteLength, 4 * MIB);
});

test('a record that is longer, or less than half as long, uses separate memory', async () => {
  using _reserved = await reserveMemory(4 * MIB);
  for (const bytes of [2 * MIB, 5 * MIB]) assert.equal(recordMemory(bytes).buffer.byteLength, bytes);
  assert.ok(recordMemory(4 * MIB).buffer.byteLength > 4 * MIB);
});

test('unused reserved memory is released', async () => {
  const reserved = await reserveMemory(4 * MIB, 8 * MIB);
  const taken = recordMemory(8 * MIB).buffer;
  reserved[Symbol.dispose]();
  assert.notEqual(recordMemory(8 * MIB).buffer, taken);
  assert.equal(recordMemory(4 * MIB).buffer.byteLength, 4 * MIB);
});

test('nothing is reserved for small records', async () => {
  using _reserved = await reserveMemory(0, MIB - 1);
  assert.equal(recordMemory(MIB).buffer.byteLength, MIB);
});
