/** Grants of conversations, while members are removed in another worker. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { AgentPrompts } from '#src/agent/agent-prompts.ts';
import type { AgentSessions } from '#src/agent/agent-sessions.ts';
import { ConversationAccess, ownerOf } from '#src/agent/conversation-access.ts';
import type { ConversationDeletion } from '#src/agent/conversation-deletion.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import type { UserId, WorkspaceId } from '#src/base/ids.ts';
import type { TicketIssuer } from '#src/http/handlers/event-tickets.ts';
import type { RunWaiting } from '#src/http/handlers/run-waiting.ts';
import type { AnyRouteRequest, Route } from '#src/http/route.ts';
import { agentSessionGrantRoutes, agentSessionRoutes } from '#src/http/routes/agent-sessions.ts';
import { conversationGrants, conversationRecords } from '#storage/records/conversations.ts';
import { openWorkers, TOKEN } from './identity-workers.ts';

const HOME = 'home' as WorkspaceId;
const CONVERSATION = 'conv_1';

/** Two workers: members are changed in the first, and the conversation is at home in the second. */
async function open(t: TestContext) {
  const [first, second] = await openWorkers(t, () => 0);
  const owner = second.enter(TOKEN);
  const access = new ConversationAccess(second.store);
  const sessions = {
    handOver: (principal: Principal, id: string, userId: string) => access.handOver(principal, id, userId),
  } as unknown as AgentSessions;
  const conversation = { createdBy: owner.userId, createdAt: '', updatedAt: '', notebookSessionId: null };
  second.store.write((tx) =>
    tx.put(
      conversationRecords,
      { ...conversation, model: null, instructions: null, datasourceSlugs: [] },
      HOME,
      CONVERSATION,
    ),
  );
  await second.store.durable();
  const routes: readonly Route[] = [
    ...agentSessionGrantRoutes(access),
    ...agentSessionRoutes(
      { sessions, prompts: {} as AgentPrompts, deletion: {} as ConversationDeletion },
      {} as TicketIssuer,
      {} as RunWaiting,
    ),
  ];
  /**
   * Carries out a request in the way of the second worker. Resolves with the code of the refusal,
   * if there is one.
   */
  const ask = async (operationId: string, userId: string): Promise<string | undefined> => {
    const route = routes.find((one) => one.operationId === operationId)!;
    const params = { sessionId: CONVERSATION };
    const request = { principal: owner, params, body: { userId } } as unknown as AnyRouteRequest;
    const decide = (decision: () => void) => (route.sharedTurn ? second.store.decide(decision) : decision());
    const refusal = await new Promise<string | undefined>((resolve) =>
      decide(() => {
        try {
          route.handle(request);
          resolve(undefined);
        } catch (error) {
          resolve((error as { code?: string }).code);
        }
      }),
    );
    await second.store.durable();
    return refusal;
  };
  const addMember = async (userId: string) => {
    first.identity.members.add(HOME, userId, { role: 'editor' });
    await first.identity.durable();
  };
  /** Removes a member in the first worker, and calls `meanwhile` before that is committed. Resolves with its result. */
  const removeMember = async <T>(userId: string, meanwhile: () => Promise<T>): Promise<T> => {
    const result = await new Promise<T>((resolve) =>
      first.store.decide(() => {
        first.identity.members.remove(HOME, userId as UserId);
        resolve(meanwhile());
      }),
    );
    await first.identity.durable();
    return result;
  };
  return { second, ask, addMember, removeMember };
}

test('a member whom another worker has just removed gets no grant to a conversation, and does not become its owner', async (t) => {
  const { second, ask, addMember, removeMember } = await open(t);
  for (const operationId of ['grantAgentSession', 'handOverAgentSession']) {
    const userId = `user-of-${operationId}`;
    await addMember(userId);
    const refusal = await removeMember(userId, () => ask(operationId, userId));
    assert.equal(refusal, 'invalid_request', operationId);
  }
  second.store.refresh();
  assert.deepEqual([...second.store.listKeys(conversationGrants, HOME, [], 10)], []);
  const record = second.store.get(conversationRecords, HOME, CONVERSATION)!;
  assert.equal(ownerOf(record), record.createdBy);
});

test('a member is granted a conversation that is at home in another worker than the workspace', async (t) => {
  const { second, ask, addMember } = await open(t);
  await addMember('bob');
  assert.equal(await ask('grantAgentSession', 'bob'), undefined);
  assert.equal(await ask('handOverAgentSession', 'bob'), undefined);
  assert.equal(ownerOf(second.store.get(conversationRecords, HOME, CONVERSATION)!), 'bob');
});
