import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { scrape } from '#test/support/metrics.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { openStream } from '#test/support/raw-stream.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

test('the metrics count requests, runs, kernels, commits, refusals and streams', async (t) => {
  const server = await startServer(t);
  const notebook = await openNotebook(server, { good: '1', bad: '1 / 0', slow: 'while True: pass' });
  assert.equal((await notebook.run(['good'])).status, 'completed');
  assert.equal((await notebook.run(['bad'])).status, 'failed');
  const slow = await notebook.submit(['slow']);
  await assert.rejects(notebook.submit(['good']), { code: 'session_busy' });
  await using _events = await notebook.events();
  const metrics = await scrape(server);
  const value = (series: string) => metrics.get(series);
  const submits =
    'http_server_request_duration_seconds_count{http_request_method="POST",http_route="/api/v3/notebook-sessions/:sessionId/executions",http_response_status_code=';
  assert.equal(value(`${submits}"202"}`), 3);
  assert.equal(value(`${submits}"409"}`), 1);
  assert.equal(value('troupe_runs_total{kind="notebook",status="completed"}'), 1);
  assert.equal(value('troupe_runs_total{kind="notebook",status="failed"}'), 1);
  assert.equal(value('troupe_run_duration_seconds_count{kind="notebook"}'), 2);
  assert.equal(value('troupe_refusals_total{kind="notebook-session",code="session_busy"}'), 1);
  assert.equal(value('troupe_kernel_starts_total{outcome="started"}'), 1);
  assert.equal(value('troupe_kernels'), 1);
  assert.ok((value('troupe_kernels_memory_bytes') ?? 0) > 2 ** 20);
  assert.equal(value('troupe_actors{kind="notebook-session",state="live.busy.running"}'), 1);
  assert.equal(value('troupe_actors{kind="run",state="running.active"}'), 1);
  assert.equal(value('troupe_streams'), 1);
  assert.ok((value('troupe_store_commit_duration_seconds_count') ?? 0) >= 5);
  assert.ok((value('troupe_store_size_bytes') ?? 0) > 0);
  assert.ok((value('troupe_actor_transitions_total{kind="run"}') ?? 0) >= 2);
  await server.client.runs.cancel(slow);
  assert.equal((await server.client.waitForRun(slow)).status, 'cancelled');
  const later = await scrape(server);
  assert.equal(later.get('troupe_runs_total{kind="notebook",status="cancelled"}'), 1);
});

test('no label of a metric contains an id, a slug, a user or a workspace', async (t) => {
  const server = await startServer(t);
  const notebook = await openNotebook(server, { a: '1' });
  await notebook.run(['a']);
  await server.request('GET', `/api/v3/notebooks/${notebook.id}`);
  await server.request('GET', '/api/v3/nothing-here/with-an-id');
  const metrics = await scrape(server);
  for (const series of metrics.keys()) {
    for (const hidden of [notebook.id, OWNER.workspaceId, OWNER.token, 'nothing-here', 'owner'])
      assert.ok(!series.includes(hidden), series);
  }
});

test('only a token with the scope of the whole server can read the metrics', async (t) => {
  const server = await startServer(t);
  const statusFor = async (authorization?: string) => {
    const headers = authorization === undefined ? {} : { authorization };
    return (await fetch(`${server.baseUrl}/metrics`, { headers })).status;
  };
  assert.equal(await statusFor(), 401);
  assert.equal(await statusFor('Bearer wrong'), 401);
  const { client } = server;
  const own = await client.accessTokens.create({ name: 'scraper', scopes: ['server:observe'] });
  assert.equal(await statusFor(`Bearer ${own.token}`), 200);
  const plain = await client.accessTokens.create({ name: 'plain', scopes: ['workspaceRuntime:connect'] });
  assert.equal(await statusFor(`Bearer ${plain.token}`), 403);
  await client.members.create({ userId: 'guest', role: 'owner' });
  const bound = await client.accessTokens.create({
    name: 'bound',
    userId: 'guest',
    scopes: ['server:observe', 'workspace:manage'],
  });
  assert.equal(await statusFor(`Bearer ${bound.token}`), 403);
  await client.accessTokens.delete(own.id);
  assert.equal(await statusFor(`Bearer ${own.token}`), 401);
});

test('the load of the server is followed live, until the token is revoked', async (t) => {
  const server = await startServer(t);
  const { client } = server;
  const refused = await client.accessTokens.create({ name: 'plain', scopes: ['workspaceRuntime:connect'] });
  const plain = await openStream(
    { ...server, owner: { ...OWNER, token: refused.token } },
    '/api/v3/server/events',
  );
  assert.equal(plain.status, 403);
  const { id, token } = await client.accessTokens.create({ name: 'watcher', scopes: ['server:observe'] });
  const watcher = await openStream({ ...server, owner: { ...OWNER, token } }, '/api/v3/server/events');
  await watcher.until('server.load');
  const notebook = await openNotebook(server, { a: '1' });
  const followed = client.followServer();
  const types: string[] = [];
  for await (const { type, data } of followed) {
    types.push(type);
    if (!('kernels' in data) || data.kernels.count === 0) continue;
    assert.ok(data.kernels.memoryBytes > 2 ** 20);
    assert.ok((data.store.commitMs ?? 0) > 0);
    assert.equal(data.streams, 2);
    break;
  }
  assert.deepEqual(types.slice(0, 3), ['server.snapshot', 'server.replayed', 'server.load']);
  await client.accessTokens.delete(id);
  await watcher.ended;
  assert.deepEqual((await client.kernels({ sessionId: notebook.id })).items.length, 1);
  assert.deepEqual((await client.kernels({ sessionId: 'nb_none' })).items, []);
});

test('an owner whose token is older than the scope can grant it to another token of their own', async (t) => {
  const server = await startServer(t);
  const scopes = ['workspaceRuntime:connect', 'workspace:manage'] as const;
  const old = await server.client.accessTokens.create({ name: 'old', scopes });
  const client = server.clientOf({ token: old.token, workspaceId: OWNER.workspaceId });
  const made = await client.accessTokens.create({ name: 'scraper', scopes: ['server:observe'] });
  assert.ok((await scrape(server, made.token)).size > 0);
  await server.client.members.create({ userId: 'guest', role: 'editor' });
  const guest = await server.client.accessTokens.create({ name: 'guest', userId: 'guest', scopes });
  await assert.rejects(
    server
      .clientOf({ token: guest.token, workspaceId: OWNER.workspaceId })
      .accessTokens.create({ name: 'more', scopes: ['server:observe'] }),
    { code: 'missing_scope' },
  );
});

for (const file of ['grafana-dashboard.json', 'prometheus-alerts.yml']) {
  test(`every metric that deploy/${file} uses is served`, async (t) => {
    const server = await startServer(t, { TROUPE_WORKERS: '2' }); // their common labels are among them
    const response = await fetch(`${server.baseUrl}/metrics`, {
      headers: { authorization: `Bearer ${OWNER.token}` },
    });
    const served = new Set([...(await response.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(namesOf));
    const path = fileURLToPath(new URL(`../../../../deploy/${file}`, import.meta.url));
    const asked = [
      ...readFileSync(path, 'utf8').matchAll(/\b(?:troupe|http_server|process|nodejs|gen_ai)_[a-z0-9_]+\b/g),
    ].map(([name]) => name);
    assert.ok(asked.length > 5);
    // Names of labels look like names of metrics.
    const isLabel = (name: string) =>
      /^(gen_ai_(operation|provider|token|tool)_\w+|http_server_label)$/.test(name);
    assert.deepEqual(
      asked.filter((name) => !served.has(name) && !isLabel(name)),
      [],
    );
  });
}

function namesOf([, name = '', type]: RegExpMatchArray): string[] {
  if (type === 'counter') return [`${name}_total`];
  return type === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name];
}
