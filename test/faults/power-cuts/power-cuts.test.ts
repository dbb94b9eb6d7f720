// tier: whole, because it makes the files of hundreds of power cuts
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { WHY_NOT_RECORDED } from '#test/support/store/write-log.ts';
import { drivePowerCuts, type PowerCutOptions, type PowerCutReport } from './power-cuts.ts';

const skip = process.env.CI === 'true' ? false : (WHY_NOT_RECORDED ?? false);

async function cutPower(t: TestContext, options: Partial<PowerCutOptions>): Promise<PowerCutReport> {
  const say = (line: string) => t.diagnostic(line);
  const none = { storeCuts: 0, serverCuts: 0, restarts: 0 };
  const report = await drivePowerCuts({ seed: 20_261_127, ...none, say, ...options });
  t.diagnostic(JSON.stringify(report));
  return report;
}

test('after a power cut the store has every acknowledged turn, and no partial turn', {
  skip,
}, async (t) => {
  const { withPendingWrites } = await cutPower(t, { storeCuts: 40 });
  assert.ok(withPendingWrites > 10);
});

test('after a power cut a server has all changes that it acknowledged to its clients', {
  skip,
}, async (t) => {
  const { restarts } = await cutPower(t, { serverCuts: 20, restarts: 1 });
  assert.equal(restarts, 1);
});

test('the check of power cuts fails on a disk that reports flushes too early', { skip }, async (t) => {
  await assert.rejects(cutPower(t, { storeCuts: 40, flushesLate: true }), ({ message, cause }: Error) => {
    assert.match(message, /^A cut at entry \d+ of \d+ .* broke the store$/);
    assert.match(String(cause), /page \d+|turn \d+ was acknowledged|is damaged/);
    return true;
  });
});
