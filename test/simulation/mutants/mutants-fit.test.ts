import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { withEdit } from '../hooks.ts';
import { editsOf, MUTANTS } from './list.ts';

test('each mutant has a place in the built server, and changes it', () => {
  for (const { name } of MUTANTS) {
    const edits = editsOf(name);
    assert.ok(edits.length > 0, name);
    for (const edit of edits) {
      const text = readFileSync(fileURLToPath(edit.url), 'utf8');
      assert.notEqual(withEdit(text, edit), text, name);
    }
  }
});

test('mutants have different names', () => {
  assert.equal(new Set(MUTANTS.map(({ name }) => name)).size, MUTANTS.length);
});

test('an edit that fits nowhere, or in two places, is an error that names its module', () => {
  const edit = { url: 'file:///a.js', from: 'x', to: 'y' };
  assert.throws(() => withEdit('z', edit), /file:\/\/\/a\.js fits in 0 places/);
  assert.throws(() => withEdit('x x', edit), /file:\/\/\/a\.js fits in 2 places/);
});
