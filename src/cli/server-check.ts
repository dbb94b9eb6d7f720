import { ApiError, ConnectionError } from '#src/client/api-error.ts';
import { createClient } from '#src/client/client.ts';
import type { Access } from './access.ts';

/** What came of asking a server; the members are those of the doctor's findings. */
export interface ServerFinding {
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  readonly advice: string | null;
}

/** Whether there is a server, it takes work, and it knows the token. */
export async function* checkServer(access: Access): AsyncGenerator<ServerFinding, void, undefined> {
  const { baseUrl, workspaceId } = access;
  const client = createClient(access);
  try {
    await client.readiness();
    yield { check: 'server', status: 'ok', detail: `${baseUrl} is ready`, advice: null };
  } catch (error) {
    yield unreachable(baseUrl, error);
    if (error instanceof ConnectionError) return;
  }
  try {
    await client.notebooks.list({ limit: 1 });
    yield { check: 'token', status: 'ok', detail: `accepted in the workspace ${workspaceId}`, advice: null };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const code = error instanceof ApiError ? error.code : undefined;
    yield {
      check: 'token',
      status: 'problem',
      detail: why,
      advice: ADVICE[code ?? ''] ?? 'See the log of the server.',
    };
  }
}

const ADVICE: Readonly<Record<string, string>> = {
  unauthenticated: 'Set SERVICE_ACCESS_TOKEN to a token of this server: troupe token create makes one.',
  not_found: 'Set SERVICE_WORKSPACE_ID to a workspace of this user: troupe workspace list shows them.',
  missing_scope: 'Use a token with the scope workspaceRuntime:connect.',
};

function unreachable(baseUrl: string, error: unknown): ServerFinding {
  if (error instanceof ConnectionError) {
    const advice = 'Start it with troupe serve, or set SERVICE_BASE_URL to where it runs.';
    return { check: 'server', status: 'warning', detail: error.message, advice };
  }
  const body = error instanceof ApiError ? { reason: undefined, ...Object(error.body) } : {};
  const reason =
    typeof body.reason === 'string' ? body.reason : error instanceof Error ? error.message : String(error);
  const detail = `${baseUrl} answers, but is not ready: ${reason}`;
  return { check: 'server', status: 'problem', detail, advice: 'Wait until it has started, or see its log.' };
}
