/** Puts the parts of the agent plane together. */

import type { Principal } from '#src/base/caller/principal.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { StreamMaker } from '#src/runtime/sessions/live-sessions.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { conversationRecords } from '#storage/records/conversations.ts';
import type { RunIndexEntry } from '#storage/records/runs.ts';
import { AgentPrompts } from './agent-prompts.ts';
import { AgentActors } from './agent-session-actors.ts';
import { agentStatusOf, shownStatusOf } from './agent-session-record.ts';
import { AgentSessions } from './agent-sessions.ts';
import { ConversationAccess, type Reader } from './conversation-access.ts';
import type { ConversationContext } from './conversation-context.ts';
import { ConversationDeletion } from './conversation-deletion.ts';
import { ConversationsOfNotebooks } from './conversations-of-notebooks.ts';
import { isAnswer } from './entry.ts';
import type { OutcomeOf } from './live-conversation.ts';
import { LiveConversations } from './live-conversations.ts';
import { ModelUse } from './model-use.ts';
import { type KeyVault, ModelKeys } from './models/model-keys.ts';
import { testModel } from './models/model-test.ts';
import { type LocalModel, Models } from './models/models.ts';
import type { DatasourceQueries } from './tools/datasource-tools.ts';
import type { Notebooks } from './tools/notebook-access.ts';

export interface AgentPlaneOptions {
  readonly makeStream: StreamMaker;
  readonly notebooks: Notebooks;
  /** Absent: agents are offered no tools for datasources. */
  readonly datasources: DatasourceQueries | undefined;
  readonly vault: KeyVault;
  readonly localModel: LocalModel | undefined;
}

export type AgentPlane = ReturnType<typeof openAgents>;

export function openAgents(
  context: RunPlaneContext,
  { makeStream, notebooks, datasources, vault, localModel }: AgentPlaneOptions,
) {
  const { store, runs, cluster, config } = context;
  const keys = new ModelKeys(store, vault);
  const models = new Models(config, keys, localModel);
  const access = new ConversationAccess(store);
  const modelUse = new ModelUse(store, cluster.worker);
  const outcomeOf: OutcomeOf = (workspaceId, { runId }, answer) => {
    const end = runId === null ? undefined : runs.reader.endOf(workspaceId, runId);
    if (end === undefined)
      return runId === null || answer === undefined || isAnswer(answer) ? undefined : 'stale';
    return end === 'running' || end === 'completed' ? undefined : end;
  };
  const conversations: LiveConversations = new LiveConversations({
    store,
    makeStream,
    owns: (...home) => cluster.owns(...home),
    isBusy: (session) => agentStatusOf(agentActors.actors.peek(session)) === 'busy',
    outcomeOf,
  });
  const agentActors: AgentActors = new AgentActors(context, conversations);
  const { plane } = agentActors;
  const all: ConversationContext = {
    ...context,
    access,
    agentActors,
    conversations,
    models,
    notebooks,
    outcomeOf,
  };
  const sessions = new AgentSessions(all);
  const deletion = new ConversationDeletion(all, sessions);
  return {
    keys,
    models,
    access,
    plane,
    sessions,
    deletion,
    prompts: new AgentPrompts(all, modelUse, datasources),
    modelUse,
    testModel: ({ workspaceId, userId }: Principal, asked: string | null, signal: AbortSignal) =>
      testModel(models, workspaceId, asked, signal, (model, usage) =>
        modelUse.add(workspaceId, userId, model, usage),
      ),
    ofNotebooks: new ConversationsOfNotebooks(all, sessions, deletion),
    /** Returns the status of a conversation as the API shows it. */
    statusOf: (workspaceId: WorkspaceId, sessionId: string) =>
      shownStatusOf(agentActors.actors.peek({ workspaceId, id: sessionId })),
    /** Returns whether the caller may know that there is this conversation. */
    mayKnow(principal: Reader, sessionId: string): boolean {
      const conversation = unlessDamaged(() =>
        store.get(conversationRecords, principal.workspaceId, sessionId),
      );
      return conversation !== undefined && access.mayRead(principal, sessionId, conversation);
    },
    /** Returns whether the run may appear in lists of this caller. */
    mayReadRun(
      principal: Principal,
      { kind, sessionId }: Pick<RunIndexEntry, 'kind' | 'sessionId'>,
    ): boolean {
      if (kind === 'notebook') return true;
      const conversation = store.get(conversationRecords, principal.workspaceId, sessionId);
      return conversation !== undefined && access.mayRead(principal, sessionId, conversation);
    },
    /** Any member may use runs of notebooks; runs of a conversation are for the users of the conversation. */
    guardRun(principal: Principal, runId: string, wanted: 'read' | 'control' | 'delete'): void {
      const conversation = runs.reader.conversationOf(principal.workspaceId, runId);
      if (conversation === undefined) return;
      if (wanted === 'control') access.checkControl(principal, conversation);
      else if (wanted === 'delete') access.checkSharing(principal, conversation);
      else access.readable(principal, conversation);
    },
  };
}
