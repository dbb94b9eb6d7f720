import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PostgresMessages } from '#src/datasource/connectors/postgres/messages.ts';

function message(letter: string, body: string): Buffer {
  const head = Buffer.from(`${letter}....`);
  head.writeUInt32BE(4 + body.length, 1);
  return Buffer.concat([head, Buffer.from(body)]);
}

function cutter(limitBytes = 1000) {
  const seen: string[] = [];
  const messages = new PostgresMessages({
    limitBytes,
    forward: (bytes) => seen.push(`driver ${bytes.toString('latin1')}`),
    refuse: (why) => seen.push(`refused: ${why}`),
  });
  const takeRows = () => {
    messages.sink = (bytes, count) => seen.push(`${count} rows ${bytes.toString('latin1')}`);
  };
  return { messages, seen, takeRows };
}

const [one, two, done] = [message('D', 'one'), message('D', 'two'), message('C', 'SELECT 2')];
const text = (...parts: Buffer[]) => Buffer.concat(parts).toString('latin1');

test('rows go to the sink and everything else to the driver, in order', () => {
  const { messages, seen, takeRows } = cutter();
  takeRows();
  messages.push(Buffer.concat([done, one, two, done]));
  assert.deepEqual(seen, [`driver ${text(done)}`, `2 rows ${text(one, two)}`, `driver ${text(done)}`]);
});

test('without a sink rows go to the driver', () => {
  const { messages, seen } = cutter();
  messages.push(Buffer.concat([one, done]));
  assert.deepEqual(seen, [`driver ${text(one, done)}`]);
});

test('bytes that are split at any place give the same whole messages', () => {
  const bytes = Buffer.concat([one, done, two, done]);
  for (let size = 1; size < bytes.length; size++) {
    const { messages, seen, takeRows } = cutter();
    takeRows();
    for (let at = 0; at < bytes.length; at += size) messages.push(bytes.subarray(at, at + size));
    const whole = [
      `1 rows ${text(one)}`,
      `driver ${text(done)}`,
      `1 rows ${text(two)}`,
      `driver ${text(done)}`,
    ];
    assert.deepEqual(seen, whole, `${size} bytes at a time`);
  }
});

test('a message of the largest size is accepted, and a message of a byte more is rejected before it has arrived', () => {
  for (const [bytes, taken] of [
    [100, true],
    [101, false],
  ] as const) {
    const { messages, seen, takeRows } = cutter(100);
    takeRows();
    const row = message('D', 'x'.repeat(bytes - 5));
    messages.push(row.subarray(0, 5));
    assert.deepEqual(seen, taken ? [] : ['refused: too_large']);
    messages.push(row.subarray(5));
    assert.deepEqual(seen, taken ? [`1 rows ${text(row)}`] : ['refused: too_large']);
  }
});

test('a malformed message is rejected, and no later message is forwarded', () => {
  const { messages, seen } = cutter();
  messages.push(Buffer.concat([done, Buffer.from([0x44, 0, 0, 0, 3]), done]));
  messages.push(done);
  assert.deepEqual(seen, [`driver ${text(done)}`, 'refused: malformed']);
});

for (const [state, body, isTaken] of [
  ['ends its last field and itself', 'SERROR\0Mno\0\0', true],
  ['has no fields', '\0', true],
  ['is empty', '', false],
  ['does not end', 'SERROR\0', false],
  ['does not end its last field', 'SERROR', false],
] as const) {
  test(`an error or a notice that ${state} is ${isTaken ? 'forwarded' : 'rejected'}`, () => {
    for (const letter of ['E', 'N']) {
      const { messages, seen } = cutter();
      const report = message(letter, body);
      messages.push(report);
      assert.deepEqual(seen, isTaken ? [`driver ${text(report)}`] : ['refused: malformed']);
    }
  });
}
