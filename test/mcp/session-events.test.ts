/** Events of a session's stream, read in slices. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Principal } from '#src/base/caller/principal.ts';
import type { Connection } from '#src/contract/client/connection.ts';
import { eventsForTools } from '#src/mcp/session-events.ts';

/** A connection whose server answers with these chunks. */
function connectionWith(chunks: readonly Uint8Array[], status = 200): Connection {
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const [chunk] = left.splice(0, 1);
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    },
  });
  const left = [...chunks];
  const response = new Response(status === 204 ? null : body, { status });
  return { open: async () => response } as unknown as Connection;
}

async function read(connection: Connection) {
  const events: unknown[] = [];
  const principal = { workspaceId: 'ws_1' } as Principal;
  const call = { connection, principal, signal: new AbortController().signal };
  for await (const event of eventsForTools(call, 'nb_1')) events.push(event);
  return events;
}

const frame = (event: unknown) => `id: a-1\ndata: ${JSON.stringify(event)}\n\n`;

test('events whose bytes are cut at any place are the same, and heartbeats and incomplete events are left out', async () => {
  const events = [{ type: 'a', text: 'ä"\\\n😀' }, { type: 'b' }];
  const bytes = Buffer.from(`:\n${events.map(frame).join(':\n')}id: a-2\ndata: {"type"`);
  for (let at = 0; at <= bytes.length; at++)
    assert.deepEqual(await read(connectionWith([bytes.subarray(0, at), bytes.subarray(at)])), events);
  assert.deepEqual(await read(connectionWith([...bytes].map((byte) => Uint8Array.of(byte)))), events);
});

test('the JSON of a long event is parsed in pieces', async (t) => {
  const event = { type: 'cells-registered', data: { cells: [{ code: 'x = "1"\n'.repeat(500_000) }] } };
  const bytes = Buffer.from(frame(event));
  const chunks = Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, i) =>
    bytes.subarray(i * 65_536, (i + 1) * 65_536),
  );
  let longest = 0;
  const parse = JSON.parse;
  t.mock.method(JSON, 'parse', (text: string) => {
    longest = Math.max(longest, text.length);
    return parse(text) as unknown;
  });
  assert.deepEqual(await read(connectionWith(chunks)), [event]);
  assert.ok(longest < 256 * 1024, `${longest} characters were parsed at once`);
});

test('the stream of a closed session is refused', async () => {
  await assert.rejects(read(connectionWith([], 204)), { code: 'session_closed' });
});
