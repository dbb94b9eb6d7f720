import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
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
  const [revoked, removed, expiring] = await Promise.all([
    tokenFor('to revoke'),
    tokenFor('of a member to remove'),
    tokenFor('to expire', new Date(Date.now() + 2500).toISOString()),
  ]);
  const streams = await Promise.all(
    [revoked, removed, expiring].map(({ token }) => follow(server, token, id)),
  );
  const owners = await follow(server, server.owner.token, id);
  const ends: string[] = [];
  const done = streams.map(({ whole }, n) =>
    whole.then(() => ends.push(['revoked', 'removed', 'expired'][n]!)),
  );
  await client.accessTokens.delete(revoked.id);
  await done[0];
  assert.deepEqual(ends, ['revoked']);
  await done[2];
  assert.deepEqual(ends, ['revoked', 'expired']);
  await client.members.delete('guest');
  await done[1];
  assert.deepEqual(ends, ['revoked', 'expired', 'removed']);
  await client.notebookSessions.close(id);
  assert.match(await owners.whole, /session\.closed/);
});

/** A code call of a guest who is an editor. It takes a minute unless it is interrupted. */
async function startCall(server: TestServer, token: string, sessionId: string, file: string) {
  const code = `import pathlib, time\npathlib.Path("${file}").write_text("here")\ntry:\n    time.sleep(60)\nexcept BaseException as error:\n    pathlib.Path("${file}").write_text(type(error).__name__)\n    raise`;
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
  await until(() => existsSync(path) && readFileSync(path, 'utf8') === 'here');
  return { answer, ended: () => readFileSync(path, 'utf8') };
}

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 30_000; !(await isTrue()); ) {
    assert.ok(Date.now() < deadline, 'it never came true');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

for (const heartbeatS of ['60', '0.05']) {
  const when = heartbeatS === '60' ? 'before its status was sent' : 'after its status was sent';
  test(`a code call ends when its caller loses the right to it, ${when}`, async (t) => {
    const server = await startServer(t, { TROUPE_HEARTBEAT_S: heartbeatS });
    const { client } = server;
    const { id } = await openNotebook(server, { a: '1' });
    const guest = async (userId: string, expiresAt?: string) => {
      await client.members.create({ userId, role: 'editor' });
      const expiry = expiresAt === undefined ? {} : { expiresAt };
      return client.accessTokens.create({ name: userId, userId, scopes: SCOPES, ...expiry });
    };
    const inTwoSeconds = new Date(Date.now() + 2000).toISOString();
    const revoked = await guest('revoked');
    const removed = await guest('removed');
    const lowered = await guest('lowered');
    const expiring = await guest('expiring', inTwoSeconds);
    for (const [token, end, status, code] of [
      [expiring, async () => {}, 401, 'unauthenticated'],
      [revoked, () => client.accessTokens.delete(revoked.id), 401, 'unauthenticated'],
      [removed, () => client.members.delete('removed'), 401, 'unauthenticated'],
      [lowered, () => client.members.update('lowered', { role: 'viewer' }), 403, 'role_too_low'],
    ] as const) {
      const call = await startCall(server, token.token, id, `${token.name}.txt`);
      if (heartbeatS !== '60') await call.answer; // at that time the head of the response is there
      const endedAt = performance.now();
      await end();
      const answer = await call.answer;
      const body = (await answer.json()) as Record<string, unknown>;
      if (heartbeatS === '60') assert.deepEqual([answer.status, body.code], [status, code]);
      else {
        assert.equal(answer.status, 200);
        const [error] = body.errors as readonly Record<string, unknown>[];
        assert.deepEqual([body.success, body.stdout, error?.type], [false, '', code]);
      }
      await until(async () => (await client.notebookSessions.get(id)).status === 'ready');
      assert.equal(call.ended(), 'KeyboardInterrupt');
      assert.ok(performance.now() - endedAt < 10_000, 'the call would have taken a minute');
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
  const call = client.code.execute(id, 'import time\ntime.sleep(0.5)\n"whole"');
  await until(async () => (await client.notebookSessions.get(id)).status === 'busy');
  await client.members.update('guest', { role: 'viewer' });
  await client.accessTokens.delete(other.id);
  await client.members.delete('guest');
  assert.equal((await call).success, true);
});
