import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HostHeartbeat } from '#src/kernel/host-heartbeat.ts';

/** A heartbeat whose beats the test makes; `said` has everything that it did, but for its questions. */
function watched(workDone: () => number | undefined) {
  const said: string[] = [];
  const asked = { times: 0 };
  const heartbeat = new HostHeartbeat({
    ask: () => asked.times++,
    workDone,
    onSilence: (isSilent) => said.push(isSilent ? 'silent' : 'back'),
    onLost: () => said.push('lost'),
  });
  const beat = (times: number) => {
    for (let i = 0; i < times; i++) heartbeat.beat();
  };
  return { heartbeat, beat, said, asked };
}

test('a host that does nothing and does not answer is silent after two more beats, and lost after eight', () => {
  const { beat, said, asked } = watched(() => 7);
  beat(2);
  assert.deepEqual(said, []);
  beat(1);
  assert.deepEqual(said, ['silent']);
  beat(5);
  assert.deepEqual(said, ['silent']);
  beat(1);
  assert.deepEqual(said, ['silent', 'lost']);
  assert.equal(asked.times, 1, 'one question waits at most');
});

test('a host that uses processor time gets longer before it is silent or lost, but not for ever', () => {
  let ticks = 0;
  const { beat, said } = watched(() => ticks++);
  beat(5);
  assert.deepEqual(said, []);
  beat(1);
  assert.deepEqual(said, ['silent']);
  beat(24);
  assert.deepEqual(said, ['silent']);
  beat(1);
  assert.deepEqual(said, ['silent', 'lost']);
});

test('a host that answers is back, and is counted anew', () => {
  const { heartbeat, beat, said } = watched(() => undefined);
  beat(8);
  heartbeat.answered();
  beat(2);
  heartbeat.answered();
  assert.deepEqual(said, ['silent', 'back']);
});
