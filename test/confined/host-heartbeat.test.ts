import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HostHeartbeat } from '#src/confined/processes/host/host-heartbeat.ts';

/**
 * A heartbeat whose beats the test makes; `said` has everything that it reported, except its
 * questions.
 */
function watched(workDone: () => number | undefined, rests = true) {
  const said: string[] = [];
  const asked = { times: 0 };
  const heartbeat = new HostHeartbeat({
    ask: () => asked.times++,
    workDone,
    rests,
    onSilence: (isSilent) => said.push(isSilent ? 'silent' : 'back'),
    onLost: () => said.push('lost'),
  });
  const beat = (times: number) => {
    for (let i = 0; i < times; i++) heartbeat.beat();
  };
  return { heartbeat, beat, said, asked };
}

test('an idle host that does not answer is silent after two more beats, and lost after eight', () => {
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

test('a host that uses processor time counts as silent or lost later, within a limit', () => {
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

test('a host that answers counts as alive, and its misses are counted from zero', () => {
  const { heartbeat, beat, said } = watched(() => undefined);
  beat(8);
  heartbeat.answered();
  beat(2);
  heartbeat.answered();
  assert.deepEqual(said, ['silent', 'back']);
});

test('after a while the heartbeat no longer asks an idle host, until the host is used or its state is requested', () => {
  const { heartbeat, beat, said, asked } = watched(() => 7);
  heartbeat.start();
  const live = (beats: number) => {
    for (let i = 0; i < beats; i++) {
      beat(1);
      heartbeat.answered();
    }
  };
  live(5);
  assert.equal(heartbeat.isResting, false);
  live(1);
  assert.equal(heartbeat.isResting, true);
  assert.equal(asked.times, 5);

  heartbeat.attend();
  heartbeat.attend();
  assert.equal(asked.times, 6, 'a question that waits is not put again');
  heartbeat.answered();
  assert.equal(heartbeat.isResting, false, 'the answer is waited for at the usual pace');
  live(1);
  assert.equal(heartbeat.isResting, true);
  assert.equal(asked.times, 6);

  heartbeat.used();
  assert.equal(asked.times, 7);
  heartbeat.answered();
  live(5);
  assert.equal(heartbeat.isResting, false);
  live(1);
  assert.equal(heartbeat.isResting, true);
  assert.deepEqual(said, []);
  heartbeat[Symbol.dispose]();
});

test('an unasked host that stops is silent two beats after its state is requested', () => {
  const { heartbeat, beat, said } = watched(() => 7);
  heartbeat.start();
  beat(1);
  heartbeat.answered();
  for (let i = 0; !heartbeat.isResting && i < 100; i++) {
    beat(1);
    if (!heartbeat.isResting) heartbeat.answered();
  }
  heartbeat.attend();
  beat(1);
  assert.deepEqual(said, []);
  beat(1);
  assert.deepEqual(said, ['silent']);
  beat(6);
  assert.deepEqual(said, ['silent', 'lost']);
});

test('a heartbeat without permission to rest asks the host at each beat', () => {
  const { heartbeat, asked } = watched(() => 7, false);
  heartbeat.start();
  for (let i = 0; i < 40; i++) {
    heartbeat.beat();
    heartbeat.answered();
  }
  assert.equal(asked.times, 40);
  heartbeat[Symbol.dispose]();
});
