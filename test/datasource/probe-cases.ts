/** Tests of the answer to a probe: one for each way in which a connection may be wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Owner } from './listening.ts';
import { probeFixture } from './probe-fixture.ts';

/** Cases by the name of the test: the difference from a connection that works, and the expected answer. */
export type ProbeCases = Readonly<
  Record<string, readonly [overrides: Record<string, string>, ok: boolean, message: string]>
>;

/** Makes a test of each case. `start` starts a server for the connection that it returns. */
export function testProbes(
  start: (owner: Owner, overrides: Record<string, string>) => Promise<{ readonly connection: object }>,
  cases: ProbeCases,
): void {
  for (const [sentence, [overrides, ok, message]] of Object.entries(cases)) {
    test(sentence, async (t) => {
      const { connection } = await start(t, overrides);
      assert.deepEqual(await probeFixture(t).probe(connection), { ok, message });
    });
  }
}
