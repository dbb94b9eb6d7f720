/** The server accepts its own answers when their members are sent back unchanged. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;

const notebook = await openNotebook(
  server,
  { numbers: 'numbers = [1, 2]', total: 'sum(numbers)' },
  {
    datasourceSlugs: ['sales'],
    variables: { A: 'b' },
    options: { total: { expand_output: true, name: 'total' } },
  },
);
const { environmentId } = await client.executionEnvironments.create();
const connection = { kind: 'sqlite', path: 'sales.db' };

interface RoundTrip {
  /** The path to read. */
  readonly from: string;
  /** The request to which the members are sent. */
  readonly method: 'POST' | 'PATCH' | 'PUT';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Members that answers never have, or whose value must differ in the request. */
  readonly more?: object;
}

type Operation = { readonly requestBody?: object };

/** Returns the names of the members of a request's body, as the OpenAPI document lists them. */
async function membersOf(method: string, path: string): Promise<readonly string[]> {
  const document = Object(await client.openapi());
  const template = Object.keys(document.paths).find((known) => {
    const pattern = new RegExp(`^${known.replace(/\{\w+\}/g, '[^/]+')}$`);
    return pattern.test(path) && document.paths[known][method.toLowerCase()] !== undefined;
  });
  const operation: Operation | undefined = document.paths[template ?? '']?.[method.toLowerCase()];
  const schema = Object(operation?.requestBody).content?.['application/json']?.schema;
  const resolved =
    schema?.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/').at(-1)];
  return Object.keys(resolved?.properties ?? {});
}

const { sessionId } = await client.agentSessions.open({ environmentId });
await client.agentSessions.close(sessionId);
await client.members.create({ userId: 'ada', role: 'viewer' });
await client.datasources.create({ slug: 'sales', connection });
await client.datasources.grant('sales', 'role:viewer');
await client.agentSessions.grant(sessionId, 'ada');
const saved = await client.notebooks.create();
const token = await client.accessTokens.create({ name: 'mine', scopes: ['workspaceRuntime:connect'] });

const ROUND_TRIPS: readonly RoundTrip[] = [
  { from: `/notebooks/${notebook.id}`, method: 'POST', path: '/notebooks' },
  {
    from: `/notebooks/${saved.id}`,
    method: 'PATCH',
    path: `/notebooks/${saved.id}`,
    more: { expectedUpdatedAt: saved.updatedAt },
  },
  {
    from: `/notebook-sessions/${notebook.id}`,
    method: 'POST',
    path: '/notebook-sessions',
    more: { notebookId: saved.id, environmentId },
  },
  { from: `/agent-sessions/${sessionId}`, method: 'POST', path: '/agent-sessions', more: { environmentId } },
  { from: '/models', method: 'POST', path: '/models/test', more: { model: null } },
  { from: '/members/ada', method: 'POST', path: '/members', more: { userId: 'bea' } },
  { from: '/members/ada', method: 'PATCH', path: '/members/ada' },
  { from: `/access-tokens/${token.id}`, method: 'POST', path: '/access-tokens' },
  { from: `/workspaces/${OWNER.workspaceId}`, method: 'POST', path: '/workspaces' },
  { from: '/datasources/sales', method: 'PUT', path: '/datasources/sales', more: { connection } },
  { from: '/datasources/sales', method: 'POST', path: '/datasources', more: { connection, slug: 'more' } },
];

for (const { from, method, path, headers = {}, more = {} } of ROUND_TRIPS) {
  test(`${method} ${path.replace(/\/[a-z]+_\w+/, '/{id}')} accepts the members of GET ${from.replace(/\/[a-z]+_\w+/, '/{id}')}`, async () => {
    model.script((exchange) => exchange.text('ready').end());
    const read = await server.request('GET', `/api/v3${from}`);
    assert.equal(read.status, 200);
    const wanted = await membersOf(method, `/api/v3${path}`);
    assert.ok(wanted.length > 0);
    const shared = Object.entries(Object(read.body)).filter(([name]) => wanted.includes(name));
    const body = { ...Object.fromEntries(shared), ...more };
    const answer = await server.request(method, `/api/v3${path}`, { headers, body });
    assert.ok(answer.status >= 200 && answer.status < 300, answer.text);
  });
}

test('an item of the list of grants is accepted as a new grant', async () => {
  for (const [path, member] of [
    ['/api/v3/datasources/sales/grants', 'subject'],
    [`/api/v3/agent-sessions/${sessionId}/grants`, 'userId'],
  ] as const) {
    const [item] = Object((await server.request('GET', path)).body).items;
    const answer = await server.request('POST', path, { body: { [member]: item[member] } });
    assert.equal(answer.status, 201, answer.text);
  }
});

test('an execution accepts a cell of an event, with its name and its whole configuration', async () => {
  await using events = await notebook.events();
  const [registered] = events.dataOf('cells-registered');
  const cells = registered!.cells.map(({ cellId, name, code, config }) => ({
    cellId,
    code,
    config: { ...config, name },
  }));
  assert.equal(cells[1]?.config.name, 'total');
  const submitted = await server.request('POST', `/api/v3/notebook-sessions/${notebook.id}/executions`, {
    body: { type: 'cells', cells },
  });
  assert.equal(submitted.status, 202, submitted.text);
  await client.waitForRun(Object(submitted.body).runId);
  const { serialization } = await client.notebooks.get(notebook.id);
  assert.deepEqual(
    serialization.cells.map(({ options }) => options),
    [{}, { expand_output: true, name: 'total' }],
  );
});

test('an execution can expand and collapse the output of a cell', async () => {
  const options = async (expandOutput: boolean) => {
    await notebook.run({ type: 'cells', cells: [{ cellId: 'numbers', config: { expandOutput } }] });
    return (await client.notebooks.get(notebook.id)).serialization.cells[0]?.options;
  };
  assert.deepEqual(await options(true), { expand_output: true });
  assert.deepEqual(await options(false), {});
});

test('the input of a run is accepted as the next execution', async () => {
  const first = await notebook.run({
    type: 'cells',
    cells: [{ cellId: 'total', code: null, config: null }],
    cacheMode: 'no-cache',
  });
  assert.deepEqual(first.input, { type: 'cells', cells: [{ cellId: 'total' }], cacheMode: 'no-cache' });
  const again = await server.request('POST', `/api/v3/notebook-sessions/${notebook.id}/executions`, {
    body: first.input,
  });
  assert.equal(again.status, 202, again.text);
  assert.equal((await client.waitForRun(Object(again.body).runId)).status, 'completed');
});

test('an optional member with null is the same as an omitted member', async () => {
  const other = await client.notebooks.create({
    serialization: { cells: [{ cell_id: 'a', code: 'x = 1' }] },
  });
  const { environmentId: place } = await client.executionEnvironments.create();
  const opened = await client.notebookSessions.open({
    notebookId: other.id,
    environmentId: place,
    mode: null,
  });
  assert.equal(opened.mode, 'edit');
  await client.notebookSessions.waitUntilReady(other.id);
  const agent = await client.agentSessions.open({ environmentId: place, id: null, notebookSessionId: null });
  assert.match(agent.sessionId, /^conv_/);
  assert.equal(agent.notebookSessionId, null);
  const code = await server.request('POST', '/api/cee/kernel/execute', {
    headers: { 'service-session-id': other.id },
    body: { code: '1', tool_call_id: null },
  });
  assert.deepEqual([code.status, Object(code.body).success], [200, true]);
  const { runId } = await client.executions.submit(other.id, {
    type: 'cells',
    cells: [{ cellId: 'a', code: null, config: { name: null, disabled: false } }],
  });
  assert.equal((await client.waitForRun(runId)).status, 'completed');
  const { serialization } = await client.notebooks.get(other.id);
  assert.deepEqual(serialization.cells, [{ cell_id: 'a', code: 'x = 1', options: {} }]);
  const { expiresAt } = await client.accessTokens.create({
    name: 'for ever',
    scopes: ['workspaceRuntime:connect'],
    expiresAt: null,
  });
  assert.equal(expiresAt, null);
});
