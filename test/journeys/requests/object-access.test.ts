/**
 * Every operation that names a resource, called by users who may not know that the resource exists. The operations come from the
 * OpenAPI document: a new one fails here until it is in the tables of this file, and after that if it reveals anything.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { type Caller, sendRaw } from '#test/support/raw-request.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { asObject, bodySchemaOf, operationsOf, readDocument, resolved } from '../../openapi/real-document.ts';

const PICTURE =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
  TROUPE_WORKSPACE_MAX_SESSIONS: '0',
});
const { client, owner } = server;
const [ann, bob, stranger] = await Promise.all([
  addMember(server, 'ann', 'editor'),
  addMember(server, 'bob', 'editor'),
  server.stranger(),
  addMember(server, 'guest.of.ann', 'viewer'),
]);
const document = await readDocument(server);

/** The resources to find: an open notebook, and a conversation, a run, a datasource, a job and a token of Ann's. */
const notebook = await openNotebook(server, {
  a: '1',
  large: 'import marimo\nmarimo.Html("x" * 100_000)',
  picture: `import marimo as mo\nmo.image("data:image/png;base64,${PICTURE}")`,
});
await using events = await notebook.events();
await notebook.run([]);
const outputId = await eventually('an event that names an asset', () =>
  events
    .dataOf('cell-op')
    .map(({ output }) => output?.assetId)
    .find((assetId) => assetId !== undefined),
);
const { environmentId } = notebook;
await ann.client.agentSessions.open({ environmentId, notebookSessionId: notebook.id });
model.script(
  (exchange) => exchange.calls(['read_output', { cellId: 'picture' }]).end('tool_calls'),
  (exchange) => exchange.text('A dot.').end(),
);
const prompt = await ann.client.agentSessions.prompt(notebook.id, 'What is it?');
const parts = (await ann.client.waitForRun(prompt.runId)).output?.parts ?? [];
const assetId = parts.find((part) => part.type === 'asset')?.assetId ?? assert.fail('there is no asset');
const { sessionId: conversationId } = await ann.client.agentSessions.open({ environmentId });
await ann.client.agentSessions.grant(conversationId, 'guest.of.ann');
await client.datasources.create({ slug: 'anns', connection: { kind: 'sqlite', path: 'a.db' } });
await client.datasources.grant('anns', 'user:ann');
await ann.client.files.put('a.db', Buffer.alloc(0)); // the datasource is an empty database
await server.request('PUT', `/api/v3/notebooks/${notebook.id}/secrets/SECRET`, { body: { value: 'hidden' } });
const NEVER = { cron: '0 0 1 1 *' };
const { id: jobId } = await ann.client.jobs.create({
  target: { notebookId: notebook.id },
  schedule: NEVER,
  paused: true,
});
const { id: hookInId } = await ann.client.hooksIn.create(jobId);
const { id: hookId } = await ann.client.hooks.create({
  url: 'https://receiver.invalid/',
  events: ['run.failed'],
});
const { id: deliveryId } = await ann.client.hooks.test(hookId);
const { items: tokens } = await ann.client.accessTokens.list();
const [{ updatedAt: version } = assert.fail('there is no version')] = await ann.client.notebooks.versions(
  notebook.id,
);

type Place = Readonly<Record<string, string>>;
/**
 * The resources that parameters of a path name, by the longest matching beginning of the path.
 * Ann's own resources are `private`.
 */
const OBJECTS: Readonly<Record<string, Place & { readonly private?: 'yes' }>> = {
  '/api/v3/notebooks/': { notebookId: notebook.id, name: 'SECRET', version },
  '/api/v3/notebook-sessions/': { sessionId: notebook.id, assetId: outputId },
  '/api/v3/execution-environments/': { environmentId },
  '/api/v3/runs/': { runId: prompt.runId, assetId, private: 'yes' },
  '/api/v3/agent-sessions/': { sessionId: conversationId, userId: 'guest.of.ann', private: 'yes' },
  '/api/v3/datasources/': { slug: 'anns', subject: 'user:ann', private: 'yes' },
  '/api/v3/access-tokens/': { tokenId: tokens[0]!.id, private: 'yes' },
  '/api/v3/jobs/': { jobId, hookInId },
  '/api/v3/hooks/': { hookId, deliveryId },
  '/api/v3/members/': { userId: 'ann' },
  '/api/v3/workspaces/': { workspaceId: owner.workspaceId },
  '/api/v3/actors/': { kind: 'run', id: prompt.runId },
};
/**
 * Paths whose parameters name no resource of a workspace, or a file in the caller's own folder.
 * Public operations name nothing.
 */
const NO_OBJECTS = [
  /^\/api\/v3\/(files|packages)\//,
  /^\/api\/v3\/charts\//,
  /^\/api\/v3\/(models\/)?keys\//,
  /^\/api\/v3\/nodes\//,
];

/** Operations for the operator of the server: a caller without the scope is refused before the workspace is looked up. */
const FOR_OPERATORS: ReadonlySet<string> = new Set(['setWorkspaceLimits']);

const operations = operationsOf(document).map((one) => {
  const parameters = [...one.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  const body = bodySchemaOf(one);
  const example = body === undefined ? undefined : [resolved(document, body).examples].flat()[0];
  return { ...one, id: String(one.operation.operationId), parameters, body, example };
});
type Operation = (typeof operations)[number];

/** Returns the objects that the path of an operation names; undefined when it names none. */
function objectsOf({ path, parameters, operation }: Operation): (typeof OBJECTS)[string] | undefined {
  const isPublic = [operation.security].flat().length === 0;
  if (parameters.length === 0 || isPublic || NO_OBJECTS.some((pattern) => pattern.test(path)))
    return undefined;
  const beginning = Object.keys(OBJECTS).find((start) => path.startsWith(start));
  assert.ok(beginning, `${path} names objects of a kind that this test does not know`);
  const objects = OBJECTS[beginning]!;
  for (const name of parameters)
    assert.ok(objects[name], `${path} names a ${name} that this test does not know`);
  return objects;
}

/** Returns an id of the same form that belongs to nothing. */
const missing = (id: string) => id.replace(/[a-z0-9](?=[^/]*$)/gi, (last) => (last === 'z' ? 'y' : 'z'));
const fill = (path: string, place: Place) => path.replace(/\{(\w+)\}/g, (_, name: string) => place[name]!);
const allMissing = (place: Place) =>
  Object.fromEntries(Object.entries(place).map(([name, id]) => [name, name === 'kind' ? id : missing(id)]));

/** Returns the query that an operation requires in every request. */
function queryOf({ operation }: Operation): string {
  const parameters = [operation.parameters].flat().map(asObject);
  const needed = parameters.filter((one) => one.in === 'query' && one.required === true);
  return needed.map(({ name, schema }) => `?${name}=${[asObject(schema).enum].flat()[0]}`).join('');
}

interface Request {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request. Returns the answer without the parts that differ between any two requests. */
async function seen(caller: Caller, method: string, path: string, request: Request, names: Place) {
  const answer = await sendRaw(server.baseUrl, method.toUpperCase(), path, caller, request);
  const headers = { ...answer.headers, date: '', 'x-request-id': '', 'content-length': '' };
  const text = JSON.stringify({ status: answer.status, headers, text: answer.text }).replace(
    /\\"requestId\\":\\"[^"]*\\"/,
    '',
  );
  const longestFirst = Object.values(names).sort((a, b) => b.length - a.length);
  const masked = longestFirst
    .reduce((shown, id) => shown.replaceAll(id, '<id>'), text)
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>');
  return { status: answer.status, masked };
}

for (const [who, caller] of [
  ['a caller from another workspace', stranger],
  ['a member with whom nothing is shared', bob],
] as const) {
  test(`no operation changes the object in its path for ${who}, or reveals that this object exists`, async () => {
    const before = await everythingOfAnn();
    let count = 0;
    for (const one of operations) {
      const objects = objectsOf(one);
      if (objects === undefined || (caller === bob && objects.private === undefined)) continue;
      count++;
      const { private: _, ...there } = objects;
      const none = allMissing(there);
      const request = one.example === undefined ? {} : { body: one.example };
      const real = await seen(caller, one.method, fill(one.path, there) + queryOf(one), request, there);
      const other = await seen(caller, one.method, fill(one.path, none) + queryOf(one), request, none);
      assert.equal(real.masked, other.masked, `${one.method} ${one.path}`);
      assert.equal(real.status, FOR_OPERATORS.has(one.id) ? 403 : 404, `${one.method} ${one.path}`);
    }
    assert.ok(count >= 25, `${count} operations`);
    assert.deepEqual(await everythingOfAnn(), before);
  });
}

/** Returns the answers that Ann gets for all reads of her own resources. */
async function everythingOfAnn(): Promise<string[]> {
  const reads = operations.filter((one) => one.method === 'get' && objectsOf(one)?.private === 'yes');
  const finite = reads.filter(({ path }) => !path.endsWith('/events'));
  return Promise.all(
    finite.map(async ({ path }) => {
      const { status, masked } = await seen(ann, 'GET', fill(path, OBJECTS[startOf(path)]!), {}, {});
      assert.equal(status, 200, path);
      return masked;
    }),
  );
}

const startOf = (path: string) => Object.keys(OBJECTS).find((start) => path.startsWith(start))!;

/** The members of request bodies that name objects, and how they name them. */
const NAMED_IN_BODIES: Readonly<Record<string, readonly [id: string, bodyOf: (id: string) => object]>> = {
  'openNotebookSession.notebookId': [notebook.id, (id) => ({ notebookId: id, environmentId })],
  'openNotebookSession.environmentId': [
    environmentId,
    (id) => ({ notebookId: notebook.id, environmentId: id }),
  ],
  'importNotebook.notebookId': [
    notebook.id,
    (id) => ({
      format: 'py',
      content: '',
      replaces: { notebookId: id, expectedUpdatedAt: notebook.notebook.updatedAt },
    }),
  ],
  'openAgentSession.environmentId': [environmentId, (id) => ({ environmentId: id })],
  'openAgentSession.notebookSessionId': [notebook.id, (id) => ({ environmentId, notebookSessionId: id })],
  'openAgentSession.id': [conversationId, (id) => ({ environmentId, id })],
  'cancelRuns.runIds': [prompt.runId, (id) => ({ runIds: [id] })],
  'createJob.agentSessionId': [
    conversationId,
    (id) => ({ target: { agentSessionId: id, prompt: 'Hello.' }, schedule: NEVER }),
  ],
  'createJob.notebookId': [notebook.id, (id) => ({ target: { notebookId: id }, schedule: NEVER })],
};
/** Members that name a person or a part of the resource in the path. */
const NAMES_NO_OBJECT = new Set(['userId', 'cellId', 'cell_id', 'tool_call_id', 'workspaceId']);

/** Members of filters. They are compared with the events of the caller's own workspace, and nobody looks for their objects. */
const ONLY_COMPARED = new Set([
  'createHook.jobId',
  'createHook.notebookId',
  'updateHook.jobId',
  'updateHook.notebookId',
]);

/** Members whose objects are answered one by one, each with its own error. */
const ANSWERS_EACH = new Set(['cancelRuns.runIds']);

test('no operation reveals to another workspace the existence of a resource that its body or a header names', async () => {
  const found = operations.flatMap((one) =>
    one.body === undefined
      ? []
      : membersOf(one.body)
          .filter((name) => /(^id|Id|_id)s?$/.test(name) && !NAMES_NO_OBJECT.has(name))
          .map((name) => ({ ...one, key: `${one.id}.${name}` }))
          .filter(({ key }) => !ONLY_COMPARED.has(key)),
  );
  assert.deepEqual(new Set(found.map(({ key }) => key)), new Set(Object.keys(NAMED_IN_BODIES)));
  for (const { key, method, path } of found) {
    const [id, bodyOf] = NAMED_IN_BODIES[key]!;
    const real = await seen(stranger, method, path, { body: bodyOf(id) }, { id });
    const other = await seen(stranger, method, path, { body: bodyOf(missing(id)) }, { id: missing(id) });
    assert.deepEqual([real.masked, real.status], [other.masked, ANSWERS_EACH.has(key) ? 200 : 404], key);
  }
  const execute = (id: string) => {
    const request = { body: { code: '1' }, headers: { 'service-session-id': id } };
    return seen(stranger, 'POST', '/api/cee/kernel/execute', request, { id });
  };
  assert.deepEqual(await execute(notebook.id), await execute(missing(notebook.id)));
});

/**
 * Returns the names of all members that a body may have, at any depth. Members of a connection are
 * left out, because they name no objects.
 */
function membersOf(schema: unknown): string[] {
  const { properties, items, anyOf, oneOf } = resolved(document, asObject(schema));
  const own = Object.entries(asObject(properties)).flatMap(([name, member]) =>
    name === 'connection' ? [] : [name, ...membersOf(member)],
  );
  const inner = [items, anyOf, oneOf].flat().filter((one) => one !== undefined);
  return [...own, ...inner.flatMap(membersOf)];
}

/** For each POST that names a resource: how Ann makes it succeed while she has the right. */
async function successes(): Promise<Readonly<Record<string, Request & { readonly path: string }>>> {
  const other = await ann.client.notebooks.create();
  const restored = await ann.client.notebooks.create();
  const { environmentId: place } = await ann.client.executionEnvironments.create();
  model.script(
    (exchange) => exchange.text('Yes.').end(),
    () => {}, // this prompt is cancelled
  );
  const conversation = `/api/v3/agent-sessions/${conversationId}`;
  const { runId } = await ann.client.agentSessions.prompt(conversationId, 'One.');
  await ann.client.waitForRun(runId);
  const pending = await ann.client.agentSessions.open({ environmentId });
  const { runId: pendingRun } = await ann.client.agentSessions.prompt(pending.sessionId, 'Two.');
  model.script((exchange) => exchange.text('Yes.').end());
  await client.agentSessions.handOver(pending.sessionId, 'owner');
  await client.agentSessions.grant(pending.sessionId, 'ann');
  return {
    importNotebook: {
      path: '/api/v3/notebooks/import',
      body: {
        format: 'py',
        content: '1',
        replaces: { notebookId: other.id, expectedUpdatedAt: other.updatedAt },
      },
    },
    restoreNotebookVersion: {
      path: `/api/v3/notebooks/${restored.id}/versions/${restored.updatedAt}/restore`,
      body: { expectedUpdatedAt: restored.updatedAt },
    },
    openNotebookSession: {
      path: '/api/v3/notebook-sessions',
      body: { notebookId: other.id, environmentId: place },
    },
    submitExecution: {
      path: `/api/v3/notebook-sessions/${notebook.id}/executions?wait=60`,
      body: { type: 'all' },
    },
    executeCode: {
      path: '/api/cee/kernel/execute',
      body: { code: '1' },
      headers: { 'service-session-id': notebook.id },
    },
    interruptNotebookSession: { path: `/api/v3/notebook-sessions/${notebook.id}/interrupt` },
    changeCells: {
      path: `/api/v3/notebook-sessions/${notebook.id}/changes`,
      body: { changes: [{ type: 'set-code', cellId: 'a', code: '2' }] },
    },
    setUiValues: {
      path: `/api/v3/notebook-sessions/${notebook.id}/ui-values`,
      body: { values: { 'a-0': 1 } },
    },
    callFunction: {
      path: `/api/v3/notebook-sessions/${notebook.id}/function-calls`,
      body: { namespace: 'a-0', functionName: 'search', args: {} },
    },
    completeCode: { path: `/api/v3/notebook-sessions/${notebook.id}/completions`, body: { code: 'a' } },
    createNotebookPage: { path: `/api/v3/notebook-sessions/${notebook.id}/pages`, body: {} },
    createNotebookEventTicket: { path: `/api/v3/notebook-sessions/${notebook.id}/event-tickets` },
    createAgentEventTicket: { path: `${conversation}/event-tickets` },
    openAgentSession: { path: '/api/v3/agent-sessions', body: { environmentId, id: conversationId } },
    submitPrompt: { path: `${conversation}/runs?wait=60`, body: { prompt: 'Three.' } },
    grantAgentSession: { path: `${conversation}/grants`, body: { userId: 'bob' } },
    createJob: {
      path: '/api/v3/jobs',
      body: { target: { notebookId: other.id }, schedule: NEVER, paused: true },
    },
    fireJob: { path: `/api/v3/jobs/${jobId}/run` },
    createHookIn: { path: `/api/v3/jobs/${jobId}/hooks-in`, body: {} },
    rotateHookSecret: { path: `/api/v3/hooks/${hookId}/rotate` },
    testHook: { path: `/api/v3/hooks/${hookId}/test` },
    replayDelivery: { path: `/api/v3/hooks/${hookId}/deliveries/${deliveryId}/replay` },
    cancelRun: { path: `/api/v3/runs/${pendingRun}/cancel` },
    testDatasource: { path: '/api/v3/datasources/anns/test' },
    grantDatasource: { path: '/api/v3/datasources/anns/grants', body: { subject: 'user:bob' } },
  };
}

test('a caller who loses the right to the resource of a POST gets a refusal instead of its recorded answer', async () => {
  const requests = await successes();
  const naming = operations.filter(
    (one) =>
      one.method === 'post' &&
      !String(one.operation.description).includes('Role: owner') &&
      (objectsOf(one) !== undefined ||
        one.id === 'executeCode' ||
        Object.keys(NAMED_IN_BODIES).some((key) => key.startsWith(`${one.id}.`) && !ANSWERS_EACH.has(key))),
  );
  assert.deepEqual(new Set(naming.map(({ id }) => id)), new Set(Object.keys(requests)));
  const send = async (id: string) => {
    const { path, body, headers = {} } = requests[id]!;
    const answer = await sendRaw(server.baseUrl, 'POST', path, ann, {
      body,
      headers: { ...headers, 'idempotency-key': id },
    });
    return [
      answer.status,
      answer.headers['idempotency-replayed'] === 'true',
      Object(answer.body).code,
    ] as const;
  };
  for (const { id } of naming) {
    const [first] = await send(id);
    assert.ok(first >= 200 && first < 300, `${id} answers ${first}`);
    assert.deepEqual([id, ...(await send(id))].slice(0, 3), [id, first, true]);
  }
  const { items: conversations } = await client.agentSessions.list();
  for (const { sessionId, ownerId } of conversations) {
    if (ownerId === 'ann') await client.agentSessions.handOver(sessionId, 'owner');
    await client.agentSessions.revoke(sessionId, 'ann');
  }
  const isPrivate = (one: Operation) => objectsOf(one)?.private === 'yes' || one.id === 'openAgentSession';
  await client.datasources.revoke('anns', 'user:ann');
  for (const one of naming.filter(isPrivate))
    assert.deepEqual([one.id, ...(await send(one.id))], [one.id, 404, false, 'not_found']);
  await client.members.update('ann', { role: 'viewer' });
  const forViewers = ['createNotebookEventTicket', 'createNotebookPage'];
  for (const one of naming.filter(({ id }) => !forViewers.includes(id))) {
    const [status, isReplayed] = await send(one.id);
    assert.ok(!isReplayed && (status === 403 || status === 404), `${one.id} answers ${status}`);
  }
  await client.members.delete('ann');
  for (const { id } of naming) assert.deepEqual([id, (await send(id))[1]], [id, false]);
});
