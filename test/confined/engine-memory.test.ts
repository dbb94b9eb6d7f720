// tier: whole, because it measures memory
/** Embedded databases that work for a notebook count towards the limit of its kernel. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { EngineProcess } from '#src/confined/processes/children/engine-process.ts';
import { openKernel, startTestHost } from './kernel-fixture.ts';

const MIB = 2 ** 20;
const LIMIT_MIB = 900;
/** Some 400 MiB in DuckDB while it runs. */
const SQL = "SELECT sum(length(s)) FROM (SELECT string_agg(repeat('x', 1000), '') AS s FROM range(150000))";

async function runs(engine: EngineProcess): Promise<boolean> {
  try {
    const { op } = (await engine.ask({ op: 'query', sql: SQL, parameters: [] })) as { op: string };
    return op === 'columns' && (await engine.ask({ op: 'next' })) instanceof Buffer;
  } catch {
    return false; // it was killed
  }
}

test("memory of a notebook's embedded databases counts towards the limit of its kernel", async (t) => {
  const host = await startTestHost({ limits: { memoryBytes: LIMIT_MIB * MIB } });
  t.after(() => host[Symbol.asyncDispose]());
  const filesDirectory = join(host.work, 'files');
  mkdirSync(filesDirectory);
  const engineFor = (memoryShare: string) =>
    host.host.startEngine({ kind: 'files', filesDirectory, path: '.', mode: 'read', memoryShare });

  const [first, second] = ['a'.repeat(32), 'b'.repeat(32)];
  const full = await openKernel(host, {}, { memoryShare: first });
  const empty = await openKernel(host, {}, { memoryShare: second });
  await full.run({ fill: `own = b'x' * (${LIMIT_MIB - 300} << 20)` });

  using ofEmpty = engineFor(second);
  assert.equal(await runs(ofEmpty), true, 'there is room for it alone');
  using ofFull = engineFor(first);
  // The kernel and the engine never exceed the limit together, and either of them may be killed.
  const isDone = await runs(ofFull);
  const exit = await Promise.race([full.exited, Promise.resolve()]);
  assert.ok(!isDone || exit?.cause === 'kernel_out_of_memory', `it ran beside a full kernel: ${exit?.cause}`);
  assert.equal((await empty.run({ a: 'print(1)' })).stdout, '1\n');
});
