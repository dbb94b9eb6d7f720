import assert from 'node:assert/strict';
import test from 'node:test';
import { UiValues } from '#src/notebook/open/ui-values.ts';

test('the last value of each element is kept, and the values of a cell that runs again are forgotten', () => {
  const values = new UiValues();
  values.set('a-0', 1);
  values.set('a-0', 2);
  values.set('ab-0', 3);
  assert.deepEqual(values.all(), { 'a-0': 2, 'ab-0': 3 });
  values.forgetCell('a');
  assert.deepEqual(values.all(), { 'ab-0': 3 });
});

test('at most ten thousand values are kept, and one more removes the oldest', () => {
  const values = new UiValues();
  for (let number = 0; number < 10_000; number++) values.set(`a-${number}`, number);
  assert.equal(Object.keys(values.all()).length, 10_000);
  values.set('b-0', 1);
  const all = values.all();
  assert.deepEqual(
    [Object.keys(all).length, 'a-0' in all, 'a-1' in all, 'b-0' in all],
    [10_000, false, true, true],
  );
});

test('all values together may have 4 MiB: older values are removed, and a value that is too large is not kept', () => {
  const values = new UiValues();
  const mib = 2 ** 20;
  values.set('a', 'x'.repeat(4 * mib - 1));
  assert.deepEqual(Object.keys(values.all()), ['a']);
  values.set('b', 1);
  assert.deepEqual(Object.keys(values.all()), ['b'], 'the older one gives way');
  values.set('c', 'x'.repeat(4 * mib));
  assert.deepEqual(Object.keys(values.all()), ['b']);
});
