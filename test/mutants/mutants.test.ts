import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { MUTANTS } from './list.ts';
import { type Mutant, marked, mutated, outdated } from './mutant.ts';

const ROOT = join(import.meta.dirname, '../../..');
const ADDS: Mutant = {
  name: 'adds',
  rule: 'rule 1',
  wrong: 'It adds.',
  file: 'package.json',
  before: 'a - b',
  after: 'a + b',
};

test('the place of each of the forty mutants exists once in the sources', () => {
  assert.deepEqual(outdated(ROOT, MUTANTS), []);
  assert.equal(new Set(MUTANTS.map(({ name }) => name)).size, 40);
});

test('a mutant replaces its text and nothing else, and its mark only adds a call', () => {
  assert.equal(mutated('return a - b;', ADDS), 'return a + b;');
  assert.equal(
    marked('return a - b;', { ...ADDS, marked: '(REACHED, a - b)' }, 'f()'),
    'return (f(), a - b);',
  );
  assert.equal(marked('a - b;', ADDS, 'f()'), 'f(); a - b;');
});

test('a mutant whose text is missing, or occurs twice, is refused with its name and file', () => {
  assert.throws(() => mutated('a * b', ADDS), /package\.json no longer contains .* adds/);
  assert.throws(() => mutated('a - b + a - b', ADDS), /package\.json contains .* adds .* more than once/);
  assert.equal(outdated(ROOT, [ADDS]).length, 1);
  assert.throws(() => marked('a - b', { ...ADDS, marked: 'a - b' }, 'f()'), /adds does not contain REACHED/);
});
