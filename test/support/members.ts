import type { Role } from '#src/base/caller/role.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Scope } from '#src/contract/wire/identity.ts';
import type { Caller } from './raw-request.ts';
import type { TestServer } from './server-fixture.ts';

/** A member of the owner's workspace who can call the server. */
export interface TestMember extends Caller {
  readonly client: Client;
}

const SCOPES: readonly Scope[] = ['workspaceRuntime:connect', 'datasource:read', 'workspace:manage'];

/** Adds a member to the owner's workspace, with a token of all scopes. */
export async function addMember(server: TestServer, userId: string, role: Role): Promise<TestMember> {
  const { client, owner } = server;
  await client.members.create({ userId, role });
  const { token } = await client.accessTokens.create({ name: userId, userId, scopes: SCOPES });
  const caller = { token, workspaceId: owner.workspaceId };
  return { ...caller, client: server.clientOf(caller) };
}
