import assert from 'node:assert/strict';
import test from 'node:test';
import { isSameInstant } from '#src/base/time/clock.ts';

const SAVED = '2026-03-01T12:00:00.120Z';

for (const [other, isSame] of [
  [SAVED, true],
  ['2026-03-01T12:00:00.12Z', true],
  ['2026-03-01T12:00:00.120000Z', true],
  ['2026-03-01T12:00:00.120000+00:00', true],
  ['2026-03-01T12:00:00.12-00:00', true],
  ['2026-03-01T17:30:00.120+05:30', true],
  ['2026-02-28T13:00:00.120-23:00', true],
  ['2026-03-01t12:00:00.120z', true],
  ['2026-03-01T12:00:00.1200001Z', false],
  ['2026-03-01T12:00:00.121Z', false],
  ['2026-03-01T12:00:00Z', false],
  ['2026-03-01T12:00:01.120Z', false],
  ['2026-03-01T12:00:00.120+01:00', false],
  ['2026-03-01T12:00:60.120Z', false],
  ['2026-02-30T12:00:00.120Z', false],
  ['2026-03-01T12:00:00.120', false],
  ['yesterday', false],
  ['', false],
] as const) {
  test(`${JSON.stringify(other)} is ${isSame ? 'the same instant as' : 'not'} ${SAVED}`, () => {
    assert.equal(isSameInstant(SAVED, other), isSame);
    assert.equal(isSameInstant(other, SAVED), isSame);
  });
}
