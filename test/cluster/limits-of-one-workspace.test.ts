/** Limits that the operator sets for one workspace, and for each of its members, in a server of one process and of three workers. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { ApiError } from '#src/contract/client/api-error.ts';
import { type Client, createClient } from '#src/contract/client/client.ts';
import type { Scope } from '#src/contract/wire/identity.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { problemOf, refusalOf } from '#test/support/refusal.ts';
import { OWNER } from '#test/support/server-fixture.ts';

const AT_ONCE = 50;
const SCOPES: readonly Scope[] = ['workspaceRuntime:connect', 'datasource:read', 'workspace:manage'];
const SLEEP = { a: 'import time\ntime.sleep(60)' };

/** Returns the member `limit` of a refusal. */
function limitOf({ body }: ApiError): unknown {
  return Object(body).limit;
}

/** A server, and helpers of its tests. Both servers are there before the first test begins: a file with no test left to run ends. */
async function prepare(workers: '1' | '3') {
  const name = workers === '1' ? 'in one process' : 'over three workers';
  const server = await startChildServer(test, {
    TROUPE_WORKERS: workers,
    TROUPE_WORKSPACE_MAX_RUNS: '6',
  });
  const { client, baseUrl } = server;
  const clientOf = (accessToken: string, workspaceId = OWNER.workspaceId) =>
    createClient({ baseUrl, accessToken, workspaceId });
  const memberOf = async (userId: string): Promise<Client> => {
    await client.members.create({ userId, role: 'editor' });
    const { token } = await client.accessTokens.create({ name: userId, userId, scopes: SCOPES });
    return clientOf(token);
  };
  const set = (limits: Parameters<typeof client.workspaces.setLimits>[1], id = OWNER.workspaceId) =>
    client.workspaces.setLimits(id, limits);
  const ada = await memberOf('ada');
  const notebooks = await Promise.all(Array.from({ length: 8 }, () => openNotebook({ client }, SLEEP)));

  /** Submits a run in each of the notebooks at once, and resolves with the ids of the runs that have begun. */
  const runAll = async (by: Client) => {
    const outcomes = await Promise.all(
      notebooks.map(({ id }) =>
        by.executions.submit(id, { type: 'all' }).then(
          ({ runId }) => runId,
          (error) => (error instanceof ApiError ? error.code : String(error)),
        ),
      ),
    );
    const refusals = new Set(outcomes.filter((outcome) => !outcome.startsWith('run_')));
    return { runIds: outcomes.filter((outcome) => outcome.startsWith('run_')), refusals: [...refusals] };
  };
  const running = async () => (await client.runs.list({ status: 'running', limit: 100 })).items;
  const cancelAll = async () => {
    const runIds = (await running()).map(({ id }) => id);
    if (runIds.length > 0) await client.runs.cancelMany(runIds);
    await eventually('all runs have ended', async () => (await running()).length === 0);
  };
  return { name, client, baseUrl, ada, notebooks, clientOf, set, runAll, running, cancelAll };
}

for (const place of [await prepare('1'), await prepare('3')]) {
  const { name, client, baseUrl, ada, notebooks, clientOf, set, runAll, running, cancelAll } = place;

  test(`${name} a limit that is set for one workspace applies at once, and a lower limit ends nothing`, async () => {
    assert.equal((await runAll(client)).runIds.length, 6, 'the setting');
    const changed = await set({ runs: 4 });
    assert.deepEqual([changed.runs, changed.set, changed.updatedBy], [4, ['runs'], 'owner']);
    assert.equal((await running()).length, 6, 'none has ended');
    const [first] = await running();
    await client.runs.cancelMany([first!.id]);
    await eventually('one has ended', async () => (await running()).length === 5);
    const none = await runAll(client);
    assert.deepEqual(none.runIds, []);
    assert.ok(none.refusals.includes('quota_exceeded'), none.refusals.join());
    await cancelAll();
    for (let round = 0; round < 2; round++) {
      assert.equal((await runAll(client)).runIds.length, 4);
      await cancelAll();
    }
    await set({ runs: 7 });
    assert.equal((await runAll(client)).runIds.length, 7);
    await cancelAll();
    await set({ runs: 0 });
    assert.equal((await runAll(client)).runIds.length, 8);
    await cancelAll();
    await set({});
    assert.equal((await runAll(client)).runIds.length, 6);
    await cancelAll();
  });

  test(`${name} one member cannot use up the share of the others, and the refusal names the limit`, async () => {
    await set({ runs: 6, runsPerUser: 2 });
    const own = await runAll(ada);
    assert.equal(own.runIds.length, 2);
    const free = async () => {
      const records = await Promise.all(notebooks.map(({ id }) => client.notebookSessions.get(id)));
      return records.filter(({ status }) => status === 'ready').map(({ sessionId }) => sessionId);
    };
    const [one, ...others] = await free();
    assert.equal(others.length, 5);
    const refused = await problemOf(ada.executions.submit(one!, { type: 'all' }));
    assert.deepEqual(
      [refused.status, refused.code, limitOf(refused)],
      [429, 'quota_exceeded', { name: 'runsPerUser', of: 'user', max: 2 }],
    );
    assert.match(
      refused.message,
      /Each member of this workspace may have at most 2 runs in progress, and you have reached this limit/,
    );
    assert.equal((await runAll(client)).runIds.length, 2, 'the others have their own');
    await set({ runs: 3 });
    const [left] = await free();
    const full = await problemOf(ada.executions.submit(left!, { type: 'all' }));
    assert.deepEqual(limitOf(full), { name: 'runs', of: 'workspace', max: 3 });
    assert.equal(full.retryAfter, 5);
    const unknown = await problemOf(
      ada.executions.submit(left!, { type: 'cells', cells: [{ cellId: 'none' }] }),
    );
    assert.equal(unknown.code, 'unknown_cell', 'a limit is the last reason to refuse a run');
    await cancelAll();
  });

  test(`${name} when fifty sessions and streams are opened at once, as many as the limits allow are accepted`, async () => {
    const live = notebooks.length;
    await set({ sessions: live + 3, sessionsPerUser: live + 2, streams: 5 });
    const open = async (by: Client) => {
      const made = await Promise.all(
        Array.from({ length: AT_ONCE / 5 }, async () => {
          const { environmentId } = await client.executionEnvironments.create();
          const { id: notebookId } = await client.notebooks.create({ title: 'one of many' });
          return { notebookId, environmentId };
        }),
      );
      const outcomes = await Promise.all(
        made.map((request) =>
          by.notebookSessions.open(request).then(
            ({ sessionId }) => sessionId,
            (error: ApiError) => error.code,
          ),
        ),
      );
      return outcomes.filter((outcome) => outcome !== 'quota_exceeded');
    };
    const mine = await open(client);
    assert.equal(mine.length, 2, mine.join());
    assert.equal((await open(ada)).length, 1);
    const streams = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, n) =>
        EventLog.open(client, notebooks[n % live]!.id).catch((error: ApiError) => error.code),
      ),
    );
    const opened = streams.filter((stream) => typeof stream !== 'string');
    assert.equal(opened.length, 5, streams.filter((one) => typeof one === 'string').join());
    await Promise.all(opened.map((stream) => stream[Symbol.asyncDispose]()));
    await set({});
  });

  test(`${name} files of one workspace have a quota of their own`, async () => {
    const { id } = await client.workspaces.create({ name: 'Small' });
    const small = clientOf(OWNER.token, id);
    await small.files.put('before', Buffer.alloc(8192));
    await set({ files: 2, filesMb: 1 }, id);
    assert.equal((await small.usage()).files.maxEntries, 2);
    await small.files.put('second', Buffer.alloc(8192));
    assert.equal(await refusalOf(small.files.put('third', Buffer.alloc(1))), '507 file_quota_exceeded');
    await client.files.put('third', Buffer.alloc(1));
    await set({ files: 3 }, id);
    await small.files.put('third', Buffer.alloc(1));
  });

  test(`${name} only operators set limits, members see them, and the audit of the workspace has each change`, async () => {
    const { workspaceId } = OWNER;
    const bound = await client.accessTokens.create({ name: 'own', userId: 'ada', scopes: SCOPES });
    assert.equal(
      await refusalOf(clientOf(bound.token).workspaces.setLimits(workspaceId, {})),
      '403 missing_scope',
    );
    const { token } = await client.accessTokens.create({ name: 'manager', scopes: ['server:manage'] });
    const manager = createClient({ baseUrl, accessToken: token });
    await manager.workspaces.setLimits(workspaceId, { sessions: 9, runsPerUser: 3 });
    const seen = await ada.workspaces.limits(workspaceId);
    assert.deepEqual([seen.sessions, seen.runs, seen.runsPerUser, seen.files], [9, 6, 3, null]);
    const { id: other } = await client.workspaces.create({ name: 'Other' });
    assert.equal(await refusalOf(ada.workspaces.limits(other)), '404 not_found');
    assert.equal((await manager.workspaces.limits(other)).sessions, null);
    for (const id of ['ws_none', '..', 'a%2Fb'])
      assert.equal(await refusalOf(manager.workspaces.setLimits(id, {})), '404 not_found');
    for (const wrong of [{ sessions: -1 }, { runs: 1.5 }, { runs: '4' }, { other: 1 }, { files: 1e12 }])
      assert.equal(
        await refusalOf(manager.workspaces.setLimits(workspaceId, wrong as never)),
        '400 invalid_request',
      );
    const { items } = await client.audit({ action: 'workspace.limits', order: 'desc', limit: 1 });
    assert.deepEqual(
      items.map(({ userId, target, detail }) => [userId, target, detail]),
      [['owner', workspaceId, 'sessions=9 runsPerUser=3']],
    );
  });
}
