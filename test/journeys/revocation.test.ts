import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer, type TestServer } from '#test/support/server-fixture.ts';

const SCOPES = ['workspaceRuntime:connect'] as const;

/** An open stream; `whole` is what it brought, once the server has ended it. */
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
