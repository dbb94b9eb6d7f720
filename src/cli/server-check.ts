import { ApiError, ConnectionError } from '#src/client/api-error.ts';
import { type Client, createClient } from '#src/client/client.ts';
import type { Access } from './access.ts';

/** What came of asking a server; the members are those of the doctor's findings. */
export interface ServerFinding {
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  readonly advice: string | null;
}

export interface ServerCheckOptions {
  /** Also ask the default model for one word, which goes to its provider. */
  readonly askModel: boolean;
}

/** Whether there is a server, it takes work, it knows the token, and has a model for agents. */
export async function* checkServer(
  access: Access,
  { askModel }: ServerCheckOptions,
): AsyncGenerator<ServerFinding, void, undefined> {
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
    return;
  }
  const model = await checkModel(client);
  yield model;
  if (askModel && model.status === 'ok') yield await testModel(client);
}

const SET_MODEL =
  'For agents set ANTHROPIC_API_KEY, OPENAI_API_KEY, TROUPE_OPENAI_COMPATIBLE_URL or TROUPE_LOCAL_MODEL, and ' +
  'TROUPE_DEFAULT_MODEL; or give the workspace a key: troupe models set-key.';

/** By what is set, not by asking a provider. */
async function checkModel(client: Client): Promise<ServerFinding> {
  const check = 'model';
  const { defaultModel, items } = await client.models.list();
  const usable = items.filter((item) => item.usable).map(({ provider }) => `${provider}/…`);
  if (usable.length === 0) {
    return { check, status: 'warning', detail: 'there is none: agents answer no prompts', advice: SET_MODEL };
  }
  if (defaultModel === null) {
    const detail = `${usable.join(', ')}; conversations have to name one`;
    return { check, status: 'ok', detail, advice: null };
  }
  const isUsable = usable.some((provider) => defaultModel.startsWith(provider.slice(0, -1)));
  if (isUsable) return { check, status: 'ok', detail: `${defaultModel} is configured`, advice: null };
  const detail = `the default ${defaultModel} has no key or address; usable are ${usable.join(', ')}`;
  return { check, status: 'warning', detail, advice: SET_MODEL };
}

async function testModel(client: Client): Promise<ServerFinding> {
  const check = 'model answers';
  try {
    const { ok, model, message, elapsedMs } = await client.models.test();
    const detail = `${model}: ${message} (${elapsedMs} ms)`;
    if (ok) return { check, status: 'ok', detail, advice: null };
    return {
      check,
      status: 'problem',
      detail,
      advice: 'Correct its key, address or name; troupe models test asks again.',
    };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { check, status: 'problem', detail: error.message, advice: SET_MODEL };
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
