import assert from 'node:assert/strict';
import test from 'node:test';
import {
  snapshotEntries,
  streamedCall,
  streamedEntry,
  streamedToolResult,
} from '#src/agent/streamed-entries.ts';
import type { AgentEntry, EntryPart } from '#src/contract/wire/agent.ts';

const KIB = 1024;
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
const entryOf = (...content: EntryPart[]): AgentEntry => ({
  id: 'entry_one',
  role: 'assistant',
  content,
  runId: 'run_one',
  createdAt: '2026-01-01T00:00:00.000Z',
});
const textEntry = (chars: number) => entryOf({ type: 'text', text: 'x'.repeat(chars) });
/** An entry whose JSON has this many bytes. */
const entryOfBytes = (bytes: number) => textEntry(bytes - bytesOf(textEntry(0)));

test('an entry of 512 KiB is streamed as it is, and the text of a longer entry is cut to 64 KiB', () => {
  const whole = entryOfBytes(512 * KIB);
  assert.equal(streamedEntry(whole), whole);
  const [part] = streamedEntry(entryOfBytes(512 * KIB + 1)).content;
  assert.ok(part?.type === 'text');
  assert.ok(bytesOf(part.text) <= 64 * KIB && bytesOf(part.text) > 64 * KIB - 8);
  assert.equal(part.text.length + part.omittedChars!, 512 * KIB + 1 - bytesOf(textEntry(0)));
});

test('the longest answers of a model are streamed in less than 1 MiB', () => {
  const text = '\u0001'.repeat(KIB);
  const many = Array.from({ length: 1000 }, (): EntryPart => ({ type: 'text', text }));
  const calls = Array.from(
    { length: 1000 },
    (_, i): EntryPart => ({ type: 'tool-call', callId: `call_${i}`, name: 'run', input: { text } }),
  );
  const one: EntryPart = { type: 'reasoning', text: text.repeat(KIB) };
  for (const content of [many, calls, [one]]) {
    const short = streamedEntry(entryOf(...content));
    assert.ok(bytesOf(short) < KIB * KIB, String(bytesOf(short)));
    assert.equal(short.content.length, content.length);
  }
});

test('the input of a call and the output of its result are streamed up to 64 KiB', () => {
  const call = (chars: number) =>
    streamedCall({ type: 'tool-call', callId: 'a', name: 'b', input: 'x'.repeat(chars) });
  const result = (output: string) =>
    streamedToolResult({
      type: 'tool-result',
      callId: 'a',
      name: 'b',
      status: 'completed',
      output,
      images: [],
    });
  assert.deepEqual(call(64 * KIB - 2), { callId: 'a', name: 'b', input: 'x'.repeat(64 * KIB - 2) });
  assert.ok(call(64 * KIB - 1).omittedChars! > 0);
  assert.equal(result('x'.repeat(64 * KIB - 2)).omittedChars, undefined);
  assert.ok(result('x'.repeat(64 * KIB - 1)).omittedChars! > 0);
  const cut = streamedCall({
    type: 'tool-call',
    callId: 'a',
    name: 'b',
    input: { code: 'x'.repeat(KIB * KIB) },
  });
  assert.ok(typeof cut.input === 'string' && cut.input.startsWith('{"code":"xxx') && cut.omittedChars! > 0);
});

test('a snapshot has the first entries of 256 KiB together', () => {
  const [small, large] = [entryOfBytes(56 * KIB), entryOfBytes(200 * KIB)];
  assert.deepEqual(snapshotEntries([small, large]), [small, large]);
  assert.deepEqual(snapshotEntries([small, entryOfBytes(200 * KIB + 1), small]), [small]);
});
