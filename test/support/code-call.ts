import type { Client } from '#src/contract/client/client.ts';
import type { PostOptions } from '#src/contract/client/connection.ts';
import type { CodeResult } from '#src/contract/wire/session.ts';

/** Runs Python in a live session, outside of any cell. */
export function callCode(
  client: Client,
  sessionId: string,
  code: string,
  options: PostOptions = {},
): Promise<CodeResult> {
  const headers = { 'service-session-id': sessionId };
  return client.send({
    method: 'POST',
    path: '/api/cee/kernel/execute',
    headers,
    body: { code },
    ...options,
  });
}
