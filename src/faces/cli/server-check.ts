import { ApiError, ConnectionError } from '#src/contract/client/api-error.ts';
import { type Client, createClient } from '#src/contract/client/client.ts';
import type { ServerAccess } from './access.ts';

/** One finding about the server, with the same members as the doctor's findings about the machine. */
export interface ServerFinding {
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  readonly advice: string | null;
}

/** The access to check. */
export interface ServerCheckOptions {
  /** Also ask the default model for one word. The request goes to the model's provider. */
  readonly askModel: boolean;
}

/** Yields whether the server runs, accepts work, knows the token, and has a model for agents. */
export async function* checkServer(
  access: ServerAccess,
  { askModel }: ServerCheckOptions,
): AsyncGenerator<ServerFinding, void, undefined> {
  const { baseUrl, workspaceId } = access;
  const client = createClient(access);
  try {
    const { warnings = [] } = await client.readiness();
    yield { check: 'server', status: 'ok', detail: `${baseUrl} is ready`, advice: null };
    for (const detail of warnings)
      yield {
        check: 'server',
        status: 'warning',
        detail,
        advice: 'Look into the log of the server, and check its disk.',
      };
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
      advice: ADVICE[code ?? ''] ?? 'Look into the log of the server.',
    };
    return;
  }
  const model = await checkModel(client);
  yield model;
  if (askModel && model.status === 'ok') yield await testModel(client);
}

const SET_MODEL =
  'To use agents, set TROUPE_DEFAULT_MODEL and one of ANTHROPIC_API_KEY, OPENAI_API_KEY, TROUPE_OPENAI_COMPATIBLE_URL or ' +
  'TROUPE_LOCAL_MODEL, or give the workspace a key: troupe models set-key.';

/** Checks only the configuration, and asks no provider. */
async function checkModel(client: Client): Promise<ServerFinding> {
  const check = 'model';
  const { defaultModel, items } = await client.models.list();
  const usable = items.filter((item) => item.usable).map(({ provider }) => `${provider}/…`);
  if (usable.length === 0) {
    return {
      check,
      status: 'warning',
      detail: 'no model is configured: agents cannot answer prompts',
      advice: SET_MODEL,
    };
  }
  if (defaultModel === null) {
    const detail = `usable are ${usable.join(', ')}; there is no default, so each conversation must name a model`;
    return { check, status: 'ok', detail, advice: null };
  }
  const isUsable = usable.some((provider) => defaultModel.startsWith(provider.slice(0, -1)));
  if (isUsable) return { check, status: 'ok', detail: `${defaultModel} is configured`, advice: null };
  const detail = `the default model ${defaultModel} has no key or URL; usable are ${usable.join(', ')}`;
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
      advice: 'Correct the key, URL or name of the model, then try again: troupe models test.',
    };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { check, status: 'problem', detail: error.message, advice: SET_MODEL };
  }
}

const ADVICE: Readonly<Record<string, string>> = {
  unauthenticated:
    'Set SERVICE_ACCESS_TOKEN to a token of this server. Create one with: troupe token create.',
  not_found: 'Set SERVICE_WORKSPACE_ID to a workspace of this user. List them with: troupe workspace list.',
  missing_scope: 'Use a token with the scope workspaceRuntime:connect.',
};

function unreachable(baseUrl: string, error: unknown): ServerFinding {
  if (error instanceof ConnectionError) {
    const advice =
      'Start the server with troupe serve, or set SERVICE_BASE_URL to the URL of a running server.';
    return { check: 'server', status: 'warning', detail: error.message, advice };
  }
  const body = error instanceof ApiError ? { reason: undefined, ...Object(error.body) } : {};
  const reason =
    typeof body.reason === 'string' ? body.reason : error instanceof Error ? error.message : String(error);
  const detail = `${baseUrl} answers, but is not ready: ${reason}`;
  return {
    check: 'server',
    status: 'problem',
    detail,
    advice: 'Wait until the server has started, or look into its log.',
  };
}
