// own process: it measures the heap
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compactPart, compactText } from '#src/base/text/compact-text.ts';
import { cutText } from '#src/base/text/cut-text.ts';
import { heapAfterCollection } from '#test/support/heap.ts';

const MIB = 2 ** 20;

/** Returns how many MiB of memory the results of `make` for twenty numbers keep. */
function heldMib(make: (n: number) => string): number {
  const before = heapAfterCollection();
  const held = Array.from({ length: 20 }, (_, n) => make(n));
  const after = heapAfterCollection();
  assert.equal(held.length, 20);
  return (after - before) / MIB;
}

const longText = (n: number) => Buffer.alloc(2 * MIB, 'x').toString('latin1') + n;

test('a part cut from a text does not keep the whole text in memory', () => {
  const flat = (n: number) => JSON.parse(JSON.stringify(longText(n))) as string;
  assert.ok(heldMib((n) => flat(n).slice(5, 100)) > 30, 'which is what a slice does');
  assert.ok(heldMib((n) => compactPart(flat(n), 5, 100)) < 5);
});

test('a text that was joined from many is one flat string', () => {
  const joined = () => {
    let text = '';
    for (let n = 0; n < 50_000; n++) text += 'x';
    return text;
  };
  assert.ok(heldMib(joined) > 20, 'which is what joining does');
  assert.ok(heldMib(() => compactText(joined())) < 5);
});

test('the copied part of a text equals the part that cutText returns', () => {
  const text = 'ab😀c';
  for (let start = 0; start <= text.length; start++)
    for (let end = start; end <= text.length + 1; end++)
      assert.equal(compactPart(text, start, end), cutText(text, start, end));
  assert.equal(compactText(text), text);
});
