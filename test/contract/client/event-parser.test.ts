import assert from 'node:assert/strict';
import test from 'node:test';
import { EventParser } from '#src/contract/client/event-parser.ts';
import { assertLinear } from '#test/support/growth.ts';

const STREAM =
  ':\n\nid: e-1\ndata: {"a":"ü😀"}\n\n: comment\ndata: one\ndata:two\ndata:  three\n\n\n' +
  'event: ignored\r\nid: e-2\r\ndata\r\n\r\nretry: 5\rdata: mac\r\rid\ndata: {}\n\nid: e\0vil\ndata: x\n\ndata: cut off';

const EXPECTED = [
  { lastEventId: 'e-1', data: '{"a":"ü😀"}' },
  { lastEventId: 'e-1', data: 'one\ntwo\n three' },
  { lastEventId: 'e-2', data: '' },
  { lastEventId: 'e-2', data: 'mac' },
  { lastEventId: '', data: '{}' },
  { lastEventId: '', data: 'x' },
];

function parse(chunks: Iterable<Uint8Array>) {
  const parser = new EventParser();
  return [...chunks].flatMap((chunk) => parser.push(chunk));
}

test('events are the same wherever the bytes are split', () => {
  const bytes = Buffer.from(STREAM);
  assert.deepEqual(parse([bytes]), EXPECTED);
  assert.deepEqual(parse(Array.from(bytes, (byte) => Buffer.from([byte]))), EXPECTED);
  for (let at = 0; at <= bytes.length; at++) {
    assert.deepEqual(parse([bytes.subarray(0, at), bytes.subarray(at)]), EXPECTED, `cut at ${at}`);
  }
});

test('the time for one long event grows with its bytes, not with the number of its chunks', () => {
  const chunk = Buffer.from('x'.repeat(4096));
  assertLinear('one event', 8000, (chunks) => {
    const parser = new EventParser();
    parser.push(Buffer.from('data: '));
    for (let i = 0; i < chunks; i++) parser.push(chunk);
    const [event] = parser.push(Buffer.from('\n\n'));
    assert.equal(event?.data.length, chunks * 4096);
  });
});
