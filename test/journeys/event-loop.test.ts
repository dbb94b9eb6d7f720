/** How long one request holds up all others, with the largest documents that are allowed. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { LoopWatch } from '#test/support/loop-watch.ts';
import { RequestThread, type ThreadAnswer } from '#test/support/request-thread.ts';
import { startScriptedModel } from '#test/support/scripted-model.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const HEADERS = {
  authorization: `Bearer ${OWNER.token}`,
  'service-workspace-id': OWNER.workspaceId,
  'content-type': 'application/json',
};
/** What no request may take of the event loop at once. */
const MAX_TURN_MS = 20;
/** A machine is slow when parsing the largest document at once takes more than so many times as long. */
const PARSE_TURNS = 3;
/** Now and then a turn has a collection of garbage in it that is not its own. */
const ATTEMPTS = 3;
const MAX_PROMPT_CHARS = 500_000;
const PROMPTS = 10;
/** The largest body is 16 MiB. */
const MAX_BODY_BYTES = 16 * 2 ** 20;

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;
const watch = new LoopWatch();
const thread = new RequestThread();
test.after(async () => {
  watch[Symbol.dispose]();
  await thread[Symbol.asyncDispose]();
});

const LINE = '# a "line" of a comment, with \\ and ä\n';
const codeOf = (chars: number) => LINE.repeat(Math.floor(chars / LINE.length));
const cellsOf = (count: number, chars: number) =>
  Array.from({ length: count }, (_, i) => ({
    cell_id: `cell-${i}`,
    code: `x_${i} = 1\n${codeOf(chars / count)}`,
  }));
/** With their JSON some 15 MiB each: one large string, and many small ones. */
const NOTEBOOKS = { 'one cell': cellsOf(1, 13.5e6), 'ten thousand cells': cellsOf(10_000, 13e6) };

const LARGEST = JSON.stringify({ serialization: { cells: NOTEBOOKS['one cell'] } });
assert.ok(LARGEST.length > 0.85 * MAX_BODY_BYTES && Buffer.byteLength(LARGEST) <= MAX_BODY_BYTES);

/** Returns the limit of this machine as busy as it is now. */
async function limitMs(): Promise<number> {
  const { longestMs } = await watch.during(async () => void JSON.parse(LARGEST));
  return Math.max(MAX_TURN_MS, longestMs / PARSE_TURNS);
}

interface Sent {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request until it has held nobody up, a few times at most, and fails otherwise. Returns the last answer. */
async function send(
  method: string,
  path: string,
  sent: () => Sent | Promise<Sent> = () => ({}),
): Promise<ThreadAnswer> {
  const turns: string[] = [];
  while (turns.length < ATTEMPTS) {
    const { body, headers = {} } = await sent();
    const bytes = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
    const url = `${server.baseUrl}/api/v3${path}`;
    const { result, longestMs } = await watch.during(() =>
      thread.send({ method, url, headers: { ...HEADERS, ...headers }, ...bytes }),
    );
    assert.ok(result.status < 300, `${method} ${path}: ${result.status} ${result.text}`);
    if (longestMs <= MAX_TURN_MS) return result;
    const most = await limitMs();
    if (longestMs <= most) return result;
    turns.push(`${Math.round(longestMs)} ms where ${Math.round(most)} are allowed`);
  }
  assert.fail(`${method} ${path} held the event loop for ${turns.join(', ')}`);
}

async function newest() {
  const [notebook] = (await client.notebooks.list({ order: 'desc', limit: 1 })).items;
  return notebook!;
}

const lastUpdate = async () => (await newest()).updatedAt;

for (const [name, cells] of Object.entries(NOTEBOOKS))
  test(`nobody waits for a request with a notebook of ${name}`, async () => {
    await send('POST', '/notebooks', () => ({ body: { serialization: { cells } } }));
    const { id } = await newest();
    const path = `/notebooks/${id}`;
    const { bytes } = await send('GET', path);
    assert.ok(bytes > 0.85 * MAX_BODY_BYTES);
    await send('GET', path, () => ({ headers: { 'accept-encoding': 'identity' } }));
    const change = (fields: object) =>
      send('PATCH', path, async () => ({ body: { expectedUpdatedAt: await lastUpdate(), ...fields } }));
    await change({ title: 'Large' });
    await change({ serialization: { cells } });
    await send('GET', '/notebooks');
    await client.notebooks.delete(id);
  });

test('nobody waits for a long conversation', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({ environmentId });
  const path = `/agent-sessions/${sessionId}`;
  const prompt = codeOf(MAX_PROMPT_CHARS);
  for (let i = 0; i < PROMPTS; i++) {
    model.script((exchange) => exchange.text('Yes.').end());
    const { runId } = await client.agentSessions.prompt(sessionId, prompt);
    await client.waitForRun(runId);
  }
  const { bytes } = await send('GET', path);
  assert.ok(bytes > PROMPTS * prompt.length);
  await send('GET', `${path}/entries`);
  await send('GET', `/runs`);
});
