import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { withTables } from '#src/docs.ts';

test('the tables in the README match the code', () => {
  const readme = readFileSync('README.md', 'utf8');
  assert.equal(readme, withTables(readme), 'run `npm run docs`');
});
