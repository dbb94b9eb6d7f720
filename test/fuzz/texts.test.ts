// tier: whole, because it makes random or hostile input
/** The fuzz of texts on a few requests. `npm run fuzz:texts` sends more of them, and measures the event loop. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { PATHS } from '#src/contract/wire/paths.ts';
import { fuzzTexts } from './text-fuzz.ts';

const SEED = Number(process.env.FUZZ_SEED ?? 20_261_128);
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 500);

test(`${REQUESTS} bad texts of seed ${SEED}, in places of all operations, get answers, and no answer is a 500`, async (t) => {
  const { problems, operations, statuses } = await fuzzTexts(t, {
    seed: SEED,
    forMs: Number.POSITIVE_INFINITY,
    most: REQUESTS,
    only: '',
    kind: '',
    say: (line) => t.diagnostic(line),
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(
    Object.keys(PATHS).filter((id) => !operations.includes(id)),
    [],
  );
  assert.ok((statuses[200] ?? 0) > 0, 'some texts get further than to a refusal');
});
