import assert from 'node:assert/strict';
import test from 'node:test';
import { EventParser } from '#src/client/event-parser.ts';

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
  const msOf = (chunks: number) => {
    const chunk = Buffer.from('x'.repeat(4096));
    const parser = new EventParser();
    const startedAt = performance.now();
    parser.push(Buffer.from('data: '));
    for (let i = 0; i < chunks; i++) parser.push(chunk);
    const [event] = parser.push(Buffer.from('\n\n'));
    assert.equal(event?.data.length, chunks * 4096);
    return performance.now() - startedAt;
  };
  msOf(500);
  const [small, large] = [msOf(1000), msOf(8000)];
  assert.ok(large < Math.max(small, 2) * 40, `${small} ms for 4 MB, ${large} ms for 32 MB`);
});
