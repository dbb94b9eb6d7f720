import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { accessTokenRoutes } from '#src/http/routes/access-tokens.ts';
import { memberRoutes } from '#src/http/routes/members.ts';
import { workspaceRoutes } from '#src/http/routes/workspaces.ts';
import { createServer } from '#src/http/server.ts';
import { WorkspaceDeletion } from '#src/people/auth/workspace-deletion.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { Removals } from '#storage/removals.ts';
import { httpDefaults } from '#test/http/http-defaults.ts';
import { openIdentity } from './identity-fixture.ts';

/** The identity fixture in a real server that has only the routes of identity. */
export async function serveIdentity(t: TestContext) {
  const fixture = await openIdentity(t);
  const { authenticator, store, workspaces, members, tokens } = fixture;
  const removals = new Removals(store, (error) => assert.ifError(error));
  t.after(() => removals[Symbol.dispose]());
  const deletion = new WorkspaceDeletion(
    workspaces,
    { cluster: ALONE, removals },
    {
      mayBeInUse: async () => false,
      isActive: () => false,
      forget: () => {},
      deleted: () => {},
      unlink: () => {},
    },
  );
  const server = await createServer({
    ...httpDefaults({
      error: (fields, message) => assert.fail(`${message} ${JSON.stringify(fields)}`),
    }),
    auth: authenticator,
    durable: () => store.durable(),
    routes: [
      ...workspaceRoutes(workspaces, deletion),
      ...memberRoutes(members),
      ...accessTokenRoutes(tokens),
    ],
  });
  t.after(() => server[Symbol.asyncDispose]());
  return { ...fixture, baseUrl: `http://127.0.0.1:${server.port}` };
}
