import assert from 'node:assert/strict';
import test from 'node:test';
import { Late, type LatePlanes } from '#src/start/app/late-planes.ts';

test('a plane that is called before all planes are open is an error, and so is a second set of planes', () => {
  const late = new Late();
  const planes = {} as LatePlanes;
  assert.throws(() => late.planes, /before all planes were open/);
  late.fill(planes);
  assert.equal(late.planes, planes);
  assert.throws(() => late.fill(planes), /filled once/);
});
