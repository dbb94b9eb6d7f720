/** Changes of members by the API, while the answer of an identity provider changes members in another worker. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { UserId, WorkspaceId } from '#src/base/ids.ts';
import type { AnyRouteRequest } from '#src/http/route.ts';
import { memberRoutes } from '#src/http/routes/members.ts';
import { memberRecords, workspaceRecords } from '#storage/records/identity.ts';
import { openWorkers, TOKEN } from './identity-workers.ts';

const HOME = 'home' as WorkspaceId;

/** Carries out a change in the home of the workspace, after the provider's answer in the other worker has taken bob's ownership. */
async function changeAfterAnswer(t: TestContext, operationId: string, body: unknown) {
  const [home, other] = await openWorkers(t, () => 0);
  const principal = home.enter(TOKEN);
  home.identity.members.add(HOME, 'bob', { role: 'owner' });
  await home.identity.durable();
  const route = memberRoutes(home.identity.members).find((one) => one.operationId === operationId)!;
  const headers = { 'if-match': '', 'if-none-match': '' };
  const request = {
    principal,
    params: { userId: principal.userId },
    headers,
    body,
  } as unknown as AnyRouteRequest;
  const decide = (decision: () => void) => (route.sharedTurn ? home.store.decide(decision) : decision());
  const refusal = await new Promise<string | undefined>((resolve) =>
    other.store.decide(() => {
      other.identity.members.remove(HOME, 'bob' as UserId);
      decide(() => {
        try {
          route.handle(request);
          resolve(undefined);
        } catch (error) {
          resolve((error as { code?: string }).code);
        }
      });
    }),
  );
  await Promise.all([other.identity.durable(), home.identity.durable()]);
  home.store.refresh();
  const owner = home.store.get(memberRecords, HOME, principal.userId);
  return { refusal, role: owner?.role, owners: home.store.get(workspaceRecords, HOME)?.owners };
}

test('the last owner stays when the provider removes the other owner at the same moment', async (t) => {
  const kept = { refusal: 'last_owner', role: 'owner', owners: 1 };
  assert.deepEqual(await changeAfterAnswer(t, 'changeMember', { role: 'editor' }), kept);
  assert.deepEqual(await changeAfterAnswer(t, 'removeMember', undefined), kept);
});
