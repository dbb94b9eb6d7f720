import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startEngine } from '#test/datasource/engine-host.ts';
import { SeededRandom } from '#test/support/random.ts';
import { CANARY, fuzzEngines } from './engine-fuzz.ts';

/** More of them with TROUPE_FUZZ_DATABASES=10000 in the environment, and others with TROUPE_FUZZ_SEED. */
const databases = Number(process.env.TROUPE_FUZZ_DATABASES ?? 25);
const seed = Number(process.env.TROUPE_FUZZ_SEED ?? 1);

test('hostile databases and statements leave nothing outside of their folder, and read nothing there', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'troupe-fuzz-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const random = new SeededRandom(seed);
  const report = await fuzzEngines({ base, random, startEngine, databases, statements: 8, patienceMs: 2000 });
  t.diagnostic(`${report.statements} statements: ${JSON.stringify(report.outcomes)}`);
  assert.deepEqual(report.outside, ['canary']);
  assert.equal(report.canary, CANARY);
  assert.ok((report.outcomes.rows ?? 0) > 0 && (report.outcomes.query ?? 0) > 0);
});
