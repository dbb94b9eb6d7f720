import assert from 'node:assert/strict';
import test from 'node:test';
import type { Entry, RegisterRead, RegisterWrite } from './history.ts';
import { judge } from './judge.ts';

const RUN = 'run_1';

const submitted: Entry = {
  kind: 'submission',
  session: 's',
  key: 'k',
  token: 't',
  from: 0,
  to: 10,
  answer: { runId: RUN },
};
const ended = (status: 'completed' | 'cancelled', at: number, follower = 'a'): Entry => ({
  kind: 'end-seen',
  at,
  follower,
  runId: RUN,
  status,
  isLive: true,
});
const read = (status: 'running' | 'completed', from: number): Entry => ({
  kind: 'run-read',
  runId: RUN,
  status,
  isStale: status === 'running',
  from,
  to: from + 5,
});
const stored = (status: 'completed' | 'running', runId = RUN, token = 't'): Entry => ({
  kind: 'final-run',
  session: 's',
  runId,
  status,
  isStale: status === 'running',
  token,
});
const ran = (times: number): Entry => ({ kind: 'executed', token: 't', times });

const SOUND = [
  submitted,
  read('running', 11),
  ended('completed', 20),
  ended('completed', 22, 'b'),
  read('completed', 30),
];

test('a history in which every run ends once and is stored is accepted', () => {
  assert.deepEqual(judge([...SOUND, stored('completed'), ran(1)]), []);
});

test('an acknowledged run that is missing is a violation', () => {
  assert.match(judge([submitted]).join(), /run_1 was acknowledged and is lost/);
});

test('an announced end that is not stored is a violation', () => {
  const problems = judge([...SOUND, stored('running'), ran(1)]);
  assert.match(problems.join(), /knew as completed, is stored as running/);
});

test('a run that reads as running after its end was announced is a violation', () => {
  const problems = judge([
    submitted,
    ended('completed', 20),
    read('running', 25),
    stored('completed'),
    ran(1),
  ]);
  assert.match(problems.join(), /was read as running and stale 5 ms later/);
});

test('a read sent before the end was announced may still show the run as running', () => {
  assert.deepEqual(
    judge([submitted, read('running', 19), ended('completed', 20), stored('completed'), ran(1)]),
    [],
  );
});

test('a run with two different ends is a violation', () => {
  const problems = judge([...SOUND, ended('cancelled', 40), stored('completed'), ran(1)]);
  assert.match(problems.join(), /also ended as cancelled/);
});

test('an end that one subscriber receives twice is a violation', () => {
  const problems = judge([...SOUND, ended('completed', 40), stored('completed'), ran(1)]);
  assert.match(problems.join(), /ended 2 times for the subscriber a/);
});

test('two runs for one idempotency key are a violation', () => {
  const retried: Entry = { ...submitted, answer: { runId: 'run_2' } };
  const problems = judge([submitted, retried, stored('completed'), stored('completed', 'run_2'), ran(1)]);
  assert.match(problems.join(), /key k was answered with several runs/);
  const unanswered: Entry = { ...submitted, answer: 'unknown' };
  const hidden = judge([unanswered, stored('completed'), stored('completed', 'run_2'), ran(1)]);
  assert.match(hidden.join(), /sent with one key and has several runs/);
});

test('code that ran twice, or that never ran although its run completed, is a violation', () => {
  assert.match(judge([...SOUND, stored('completed'), ran(2)]).join(), /ran 2 times/);
  assert.match(judge([...SOUND, stored('completed')]).join(), /its code t never ran/);
});

const write = (
  expected: string,
  token: string,
  [from, to]: readonly [number, number],
  answer: RegisterWrite['answer'],
): Entry => ({ kind: 'register-write', register: 'r', expected, token, from, to, answer });
const value = (version: string, token: string, [from, to]: readonly [number, number]): RegisterRead => ({
  kind: 'register-read',
  register: 'r',
  version,
  token,
  from,
  to,
});

test('a register whose writes overlap and whose unanswered write was read is accepted', () => {
  const history = [
    value('v0', '', [0, 1]),
    write('v0', 'a', [2, 9], { version: 'v1' }),
    write('v0', 'b', [3, 8], 'conflict'),
    value('v0', '', [4, 7]),
    value('v1', 'a', [5, 6]),
    write('v1', 'c', [10, 12], 'unknown'),
    value('v2', 'c', [20, 21]),
    write('v2', 'd', [22, 23], { version: 'v3' }),
  ];
  assert.deepEqual(judge(history), []);
});

test('a version that is replaced twice is a violation', () => {
  const history = [
    value('v0', '', [0, 1]),
    write('v0', 'a', [2, 9], { version: 'v1' }),
    write('v0', 'b', [3, 8], { version: 'v2' }),
  ];
  assert.match(judge(history).join(), /version v0 was replaced 2 times/);
});

test('reading an old version after a client knew of a newer one is a violation', () => {
  const written = [value('v0', '', [0, 1]), write('v0', 'a', [2, 3], { version: 'v1' })];
  assert.match(judge([...written, value('v0', '', [7, 8])]).join(), /v0 was read 4 ms after/);
  const unanswered = [
    value('v0', '', [0, 1]),
    write('v0', 'a', [2, 30], 'unknown'),
    value('v1', 'a', [4, 5]),
  ];
  assert.match(judge([...unanswered, value('v0', '', [7, 8])]).join(), /v0 was read 2 ms after/);
  const refused = [
    value('v0', '', [0, 1]),
    write('v0', 'a', [2, 30], 'unknown'),
    write('v0', 'b', [3, 4], 'conflict'),
  ];
  assert.match(judge([...refused, value('v0', '', [7, 8])]).join(), /v0 was read 3 ms after/);
});

test('a write that is refused although nothing replaced its version is a violation', () => {
  const history = [value('v0', '', [0, 1]), write('v0', 'b', [3, 4], 'conflict')];
  assert.match(judge(history).join(), /refused, though nothing had replaced it/);
});

test('an acknowledged write that a later reader does not find is a violation', () => {
  const history = [
    value('v0', '', [0, 1]),
    write('v0', 'a', [2, 3], { version: 'v1' }),
    write('v1', 'b', [4, 5], { version: 'v2' }),
    value('v1', 'a', [9, 10]),
  ];
  assert.match(judge(history).join(), /v1 was read 4 ms after/);
});
