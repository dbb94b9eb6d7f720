/**
 * Races whose requests arrive at different workers: fifty at once have fifty connections, which the system deals out
 * among the workers. `TROUPE_TEST_ROUNDS` says how often each is run.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { type RawRequest, sendRaw } from '#test/support/raw-request.ts';
import { OWNER } from '#test/support/server-fixture.ts';

const ROUNDS = Number(process.env.TROUPE_TEST_ROUNDS ?? 2);
const AT_ONCE = 50;

const server = await startChildServer(test, { TROUPE_WORKERS: '3' });
const { client, baseUrl } = server;

interface Request extends RawRequest {
  readonly method: string;
  readonly path: string;
}

/** Sends fifty requests at once. Returns how often each outcome came: a status, with the code of a refusal. */
async function race(
  requestOf: (index: number) => Request,
): Promise<{ readonly tally: Record<string, number>; readonly bodies: readonly unknown[] }> {
  const answers = await Promise.all(
    Array.from({ length: AT_ONCE }, (_, index) => {
      const { method, path, headers, body } = requestOf(index);
      return sendRaw(baseUrl, method, path, OWNER, { body, ...(headers && { headers }) });
    }),
  );
  const tally: Record<string, number> = {};
  for (const { status, body } of answers) {
    const code = status < 400 ? '' : ` ${(body as { code: string }).code}`;
    tally[`${status}${code}`] = (tally[`${status}${code}`] ?? 0) + 1;
  }
  return { tally, bodies: answers.map(({ body }) => body) };
}

async function rounds(once: (round: number) => Promise<void>): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) await once(round);
}

/** Returns the ids of all pages of a list. */
async function idsOf(items: AsyncIterable<{ readonly id: string }>): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of items) ids.push(id);
  return ids;
}

const allEnvironments = async (from?: string) => {
  const ids: string[] = [];
  for (let after = from; ; ) {
    const { items, nextCursor } = await client.executionEnvironments.list({
      limit: 20,
      ...(after && { after }),
    });
    ids.push(...items.map(({ environmentId }) => environmentId));
    if (nextCursor === null) return ids;
    after = nextCursor;
  }
};
const ENVIRONMENTS = '/api/v3/execution-environments';
const SESSIONS = '/api/v3/notebook-sessions';

test('of fifty executions at different workers one is accepted; fifty cancellations are all answered, and one cancellation ends the run', async () => {
  const notebook = await openNotebook(server, { a: 'import time\nwhile True: time.sleep(0.01)' });
  const accepted: string[] = [];
  await rounds(async () => {
    const body = { type: 'all' };
    const { tally, bodies } = await race(() => ({
      method: 'POST',
      path: `${SESSIONS}/${notebook.id}/executions`,
      body,
    }));
    assert.deepEqual(tally, { '202': 1, '409 session_busy': AT_ONCE - 1 });
    const runId = bodies.flatMap((one) => (one as { runId?: string }).runId ?? [])[0]!;
    const cancelled = await race(() => ({ method: 'POST', path: `/api/v3/runs/${runId}/cancel` }));
    const { '202': first = 0, '200': late = 0, '409 run_finished': over = 0 } = cancelled.tally;
    assert.equal(first + late + over, AT_ONCE, JSON.stringify(cancelled.tally));
    assert.equal((await client.waitForRun(runId)).status, 'cancelled');
    accepted.push(runId);
  });
  assert.deepEqual(await idsOf(client.executions.each(notebook.id)), accepted);
  await notebook.close();
});

test('fifty creations with one idempotency key that reach different workers make one notebook', async () => {
  const ofAllRounds: string[] = [];
  await rounds(async (round) => {
    const { tally, bodies } = await race(() => ({
      method: 'POST',
      path: '/api/v3/notebooks',
      headers: { 'idempotency-key': `key-${round}` },
      body: { title: 'made once', serialization: { cells: [] } },
    }));
    const { '201': made = 0, '409 idempotency_in_progress': waiting = 0 } = tally;
    assert.equal(made + waiting, AT_ONCE, JSON.stringify(tally));
    assert.ok(made >= 1);
    const ids = new Set(bodies.flatMap((one) => (one as { id?: string }).id ?? []));
    assert.equal(ids.size, 1);
    ofAllRounds.push(...ids);
  });
  assert.deepEqual(await idsOf(client.notebooks.each({ title: 'made once' })), ofAllRounds);
});

test('of fifty code calls with one idempotency key in two sessions, one runs', async () => {
  const notebooks = await Promise.all([openNotebook(server, { a: '1' }), openNotebook(server, { a: '1' })]);
  const code = 'open("calls", "a").write("+")';
  await rounds(async (round) => {
    const { tally } = await race((index) => ({
      method: 'POST',
      path: '/api/cee/kernel/execute',
      headers: {
        'idempotency-key': `call-${round}`,
        'service-session-id': notebooks[index % notebooks.length]!.id,
      },
      body: { code },
    }));
    const { '200': ran = 0, '409 idempotency_in_progress': late = 0, ...rest } = tally;
    assert.equal(ran + late + (rest['409 idempotency_key_reused'] ?? 0), AT_ONCE, JSON.stringify(tally));
    assert.ok(ran >= 1);
  });
  assert.equal(
    readFileSync(join(server.dataDir, 'workspaces', OWNER.workspaceId, 'files', 'calls'), 'utf8'),
    '+'.repeat(ROUNDS),
  );
  for (const notebook of notebooks) await notebook.close();
});

test('paging the environments misses no environment that requests at different workers create meanwhile', async () => {
  const walked = await allEnvironments();
  let isOver = false;
  const creating = Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let n = 0; n < 3; n++) await sendRaw(baseUrl, 'POST', ENVIRONMENTS, OWNER, {});
    }),
  ).finally(() => {
    isOver = true;
  });
  const follow = async () => walked.push(...(await allEnvironments(walked.at(-1))));
  while (!isOver) await follow();
  await creating;
  await follow();
  assert.deepEqual(walked, await allEnvironments());
});

test('fifty requests at different workers that remove all owners leave one owner', () =>
  rounds(async (round) => {
    const workspace = await client.workspaces.create({ name: `owners ${round}` });
    const caller = { ...OWNER, workspaceId: workspace.id };
    const owners = Array.from({ length: AT_ONCE - 1 }, (_, index) => `owner-${index}`);
    const asOwner = (method: string, path: string, body?: unknown) =>
      sendRaw(baseUrl, method, `/api/v3/members${path}`, caller, {
        ...(body === undefined ? {} : { body }),
      });
    for (const userId of owners)
      assert.equal((await asOwner('POST', '', { userId, role: 'owner' })).status, 201);
    // The caller is removed last, because all requests after its removal would be refused.
    const removed = await Promise.all(owners.map((userId) => asOwner('DELETE', `/${userId}`)));
    assert.deepEqual(new Set(removed.map(({ status }) => status)), new Set([204]));
    const own = await Promise.all(Array.from({ length: AT_ONCE }, () => asOwner('DELETE', '/owner')));
    assert.deepEqual(
      new Set(own.map(({ status, body }) => `${status} ${(body as { code: string }).code}`)),
      new Set(['409 last_owner']),
    );
  }));
