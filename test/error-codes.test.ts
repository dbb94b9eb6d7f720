import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { CATALOGUE } from '#src/base/errors/errors.ts';

/** Tests that list codes without causing them. */
const LISTS = new Set([
  'error-codes.test.ts',
  join('http', 'openapi.test.ts'),
  join('openapi', 'document.test.ts'),
]);

test('every error code of the API is expected by a test', () => {
  const root = join(import.meta.dirname, '..', '..', 'test');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' });
  const tests = files.filter((file) => file.endsWith('.test.ts') && !LISTS.has(file));
  assert.ok(tests.length > 150);
  const texts = tests.map((file) => readFileSync(join(root, file), 'utf8'));
  const untested = Object.keys(CATALOGUE).filter((code) => {
    const expected = new RegExp(`\\b${code}\\b`);
    return !texts.some((text) => expected.test(text));
  });
  assert.deepEqual(untested, []);
});
