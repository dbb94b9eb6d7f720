// tier: whole, because it makes random or hostile input
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startEngine } from '#test/datasource/engine-host.ts';
import { SeededRandom } from '#test/support/random.ts';
import { askEngines } from './ask-statements.ts';
import { CANARY, fuzzDatabases, type Outcomes } from './engine-fuzz.ts';
import { fuzzThroughServer } from './server-fuzz.ts';

/** `npm run fuzz:databases` makes more databases, with other seeds. */
const DATABASES = 25;
const SEED = 1;

test('hostile databases and statements write and read nothing outside of their folder', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'troupe-fuzz-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const [folder, canary] = [join(base, 'files'), join(base, 'canary')];
  mkdirSync(folder);
  writeFileSync(canary, CANARY);
  using engines = askEngines(folder, startEngine);
  const random = new SeededRandom(SEED);
  const { ask } = engines;
  const outcomes = await fuzzDatabases({ folder, canary, random, databases: DATABASES, statements: 8, ask });
  assertMixed(t, outcomes, 'rows', 'query');
  assert.deepEqual(readdirSync(base).sort(), ['canary', 'files']);
  assert.equal(readFileSync(canary, 'utf8'), CANARY);
});

test('a server whose notebooks query hostile databases survives, and so do its kernels', async (t) => {
  const outcomes = await fuzzThroughServer(t, { random: new SeededRandom(SEED), databases: DATABASES });
  assertMixed(t, outcomes, 'rows', 'OperationalError', 'ProgrammingError');
});

/**
 * Asserts that the fuzz met all of these outcomes, because a fuzz that meets only refusals tests
 * little.
 */
function assertMixed(t: TestContext, outcomes: Outcomes, ...kinds: readonly string[]): void {
  t.diagnostic(JSON.stringify(outcomes));
  for (const kind of kinds) assert.ok((outcomes[kind] ?? 0) > 0, `no statement ended as ${kind}`);
}
