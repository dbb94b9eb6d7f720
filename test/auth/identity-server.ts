import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { accessTokenRoutes } from '#src/http/routes/access-tokens.ts';
import { memberRoutes } from '#src/http/routes/members.ts';
import { workspaceRoutes } from '#src/http/routes/workspaces.ts';
import { createServer } from '#src/http/server.ts';
import { openIdentity } from './identity-fixture.ts';

/** The identity fixture behind a real server with the routes of identity alone. */
export async function serveIdentity(t: TestContext) {
  const fixture = await openIdentity(t);
  const { authenticator, store, workspaces, members, tokens } = fixture;
  const server = await createServer({
    listen: { host: '127.0.0.1', port: 0 },
    auth: authenticator,
    log: { error: (fields, message) => assert.fail(`${message} ${JSON.stringify(fields)}`) },
    durable: () => store.durable(),
    routes: [...workspaceRoutes(workspaces), ...memberRoutes(members), ...accessTokenRoutes(tokens)],
  });
  t.after(() => server[Symbol.asyncDispose]());
  return { ...fixture, baseUrl: `http://127.0.0.1:${server.port}` };
}
