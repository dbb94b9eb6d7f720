import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer, type TestServer } from '#test/support/server-fixture.ts';

const SCOPES = ['workspaceRuntime:connect'] as const;

/** An open stream; `whole` is its text, once the server has ended it. */
async function follow(server: TestServer, token: string, sessionId: string) {
  const response = await fetch(`${server.baseUrl}/api/v3/notebook-sessions/${sessionId}/events`, {
    headers: { authorization: `Bearer ${token}`, 'service-workspace-id': server.owner.workspaceId },
  });
  assert.equal(response.status, 200);
  return { whole: response.text() };
}

/**
 * Begins something with a token that expires while it goes on. When the machine is so busy that the token expires too early,
 * `begin` resolves with undefined, and is called again with a token that lives longer.
 */
async function withExpiringToken<T>(begin: (expiresAt: string) => Promise<T | undefined>): Promise<T> {
  for (let lifetimeS = 2; lifetimeS <= 64; lifetimeS *= 2) {
    const begun = await begin(new Date(Date.now() + lifetimeS * 1000).toISOString());
    if (begun !== undefined) return begun;
  }
  return assert.fail('even within a minute it had not begun');
}

test('a stream ends when the token or the membership that opened it ends', async (t) => {
  const server = await startServer(t);
  const { client } = server;
  const { id } = await openNotebook(server, { a: '1' });
  await client.members.create({ userId: 'guest', role: 'viewer' });
  const tokenFor = (name: string, expiresAt?: string) =>
    client.accessTokens.create({
      name,
      userId: 'guest',
      scopes: SCOPES,
      ...(expiresAt === undefined ? {} : { expiresAt }),
    });
  const [revoked, removed] = await Promise.all([tokenFor('to revoke'), tokenFor('of a member to remove')]);
  const streams = await Promise.all([revoked, removed].map(({ token }) => follow(server, token, id)));
  const owners = await follow(server, server.owner.token, id);
  const ends: string[] = [];
  const done = streams.map(({ whole }, n) => whole.then(() => ends.push(['revoked', 'removed'][n]!)));
  await client.accessTokens.delete(revoked.id);
  await done[0];
  assert.deepEqual(ends, ['revoked']);
  const expiring = await withExpiringToken(async (expiresAt) => {
    const { token } = await tokenFor('to expire', expiresAt);
    return follow(server, token, id).catch(() => undefined);
  });
  await expiring.whole;
  assert.deepEqual(ends, ['revoked']);
  await client.members.delete('guest');
  await done[1];
  assert.deepEqual(ends, ['revoked', 'removed']);
  await client.notebookSessions.close(id);
  assert.match(await owners.whole, /session\.closed/);
});

/** A code call of a guest who is an editor. It takes an hour unless it is interrupted. Undefined when it was over before it began. */
async function startCall(server: TestServer, token: string, sessionId: string, file: string) {
  const code = `import pathlib, time\ntry:\n    pathlib.Path("${file}").write_text("here")\n    time.sleep(3600)\nexcept BaseException as error:\n    pathlib.Path("${file}").write_text(type(error).__name__)\n    raise`;
  const answer = fetch(`${server.baseUrl}/api/cee/kernel/execute`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'service-workspace-id': server.owner.workspaceId,
      'service-session-id': sessionId,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ code }),
  });
  const path = join(server.filesDir, file);
  let isOver = false;
  const over = async () => {
    await (await answer).clone().text();
    isOver = true;
  };
  over().catch(() => {}); // the test gets the error with the answer
  const hasBegun = await eventually('the call has begun, or was refused', () => {
    if (existsSync(path) && readFileSync(path, 'utf8') === 'here') return 'begun';
    return isOver && 'refused';
  });
  return hasBegun === 'begun' ? { answer, ended: () => readFileSync(path, 'utf8') } : undefined;
}

for (const heartbeatS of ['60', '0.05']) {
  const when = heartbeatS === '60' ? 'before its status was sent' : 'after its status was sent';
  test(`a code call ends when its caller loses the right to run code, ${when}`, async (t) => {
    const server = await startServer(t, { TROUPE_HEARTBEAT_S: heartbeatS });
    const { client } = server;
    const { id } = await openNotebook(server, { a: '1' });
    const guest = async (userId: string, expiresAt?: string) => {
      await client.members.create({ userId, role: 'editor' });
      const expiry = expiresAt === undefined ? {} : { expiresAt };
      return client.accessTokens.create({ name: userId, userId, scopes: SCOPES, ...expiry });
    };
    const revoked = await guest('revoked');
    const removed = await guest('removed');
    const lowered = await guest('lowered');
    const start = (token: { token: string; name: string }) =>
      startCall(server, token.token, id, `${token.name}.txt`);
    let tokens = 0;
    const expiring = () =>
      withExpiringToken(async (expiresAt) => start(await guest(`expiring-${tokens++}`, expiresAt)));
    for (const [token, end, status, code] of [
      [undefined, async () => {}, 401, 'unauthenticated'],
      [revoked, () => client.accessTokens.delete(revoked.id), 401, 'unauthenticated'],
      [removed, () => client.members.delete('removed'), 401, 'unauthenticated'],
      [lowered, () => client.members.update('lowered', { role: 'viewer' }), 403, 'role_too_low'],
    ] as const) {
      const call = await (token === undefined ? expiring() : start(token));
      assert.ok(call !== undefined);
      if (heartbeatS !== '60') await call.answer; // at that time the head of the response is there
      await end();
      const answer = await call.answer;
      const body = (await answer.json()) as Record<string, unknown>;
      if (heartbeatS === '60') assert.deepEqual([answer.status, body.code], [status, code]);
      else {
        assert.equal(answer.status, 200);
        const [error] = body.errors as readonly Record<string, unknown>[];
        assert.deepEqual([body.success, body.stdout, error?.type], [false, '', code]);
      }
      await eventually('it is ready', async () => (await client.notebookSessions.get(id)).status === 'ready');
      assert.equal(call.ended(), 'KeyboardInterrupt');
    }
    assert.equal((await client.code.execute(id, 'a = 1\na')).success, true);
  });
}

test('a change of another user does not end a code call', async (t) => {
  const server = await startServer(t);
  const { client } = server;
  const { id } = await openNotebook(server, { a: '1' });
  await client.members.create({ userId: 'guest', role: 'editor' });
  const other = await client.accessTokens.create({ name: 'other', userId: 'guest', scopes: SCOPES });
  const waiting = 'import pathlib, time\nwhile not pathlib.Path("go").exists(): time.sleep(0.01)\n"whole"';
  const call = client.code.execute(id, waiting);
  await eventually('it is busy', async () => (await client.notebookSessions.get(id)).status === 'busy');
  await client.members.update('guest', { role: 'viewer' });
  await client.accessTokens.delete(other.id);
  await client.members.delete('guest');
  writeFileSync(join(server.filesDir, 'go'), '');
  assert.equal((await call).success, true);
});
