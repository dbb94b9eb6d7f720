/**
 * Reads the events of a session's stream in slices, because the state of a large notebook arrives in one turn and has
 * megabytes.
 */

import { inSlices } from '#src/base/async/slices.ts';
import { parseTrustedJson } from '#src/base/json/json-parse.ts';
import { joined } from '#src/base/text/joined-bytes.ts';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { StreamEvent } from '#src/contract/wire/events.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { McpCall } from './mcp-call.ts';

const LINE_END = 0x0a;
const DATA = 'data: ';

/**
 * Yields the events of a session's stream from its beginning, until the stream ends or the loop is left. With `observe`, a sleeping session
 * stays asleep. Throws the refusals of the
 * API, and `session_closed` for the stream of a closed session.
 */
export async function* eventsForTools(
  { connection, principal: { workspaceId }, signal }: Pick<McpCall, 'connection' | 'principal' | 'signal'>,
  sessionId: string,
  query: { readonly observe?: boolean } = {},
): AsyncGenerator<StreamEvent, void, undefined> {
  const path = pathOf('followNotebookSession', { sessionId });
  const headers = { accept: 'text/event-stream' };
  const response = await connection.open({ method: 'GET', path, query, headers, signal });
  if (response.status === 204 || response.body === null)
    throw new ApiError(409, response.headers, { code: 'session_closed', detail: 'The session is closed.' });
  const open: Uint8Array[] = [];
  for await (const chunk of response.body) {
    yield* await inSlices(eventsIn(open, chunk), workspaceId);
    signal.throwIfAborted();
  }
}

/**
 * Returns the events that a chunk completes, in steps of up to a millisecond. `open` has the pieces of the line that
 * earlier chunks have left incomplete.
 */
function* eventsIn(open: Uint8Array[], chunk: Uint8Array): Generator<undefined, StreamEvent[]> {
  const events: StreamEvent[] = [];
  let from = 0;
  for (let end = chunk.indexOf(LINE_END); end !== -1; end = chunk.indexOf(LINE_END, from)) {
    open.push(chunk.subarray(from, end));
    from = end + 1;
    const line = yield* joined(open.splice(0));
    if (line.toString('latin1', 0, DATA.length) === DATA)
      events.push((yield* parseTrustedJson(line.subarray(DATA.length))) as StreamEvent);
  }
  if (from < chunk.byteLength) open.push(chunk.subarray(from));
  return events;
}
