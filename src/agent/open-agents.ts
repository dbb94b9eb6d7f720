/** Puts the parts of the agent plane together. */

import type { Principal } from '#src/base/caller/principal.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { Log } from '#src/base/log/log.ts';
import type { Tracer } from '#src/base/tracing/tracer.ts';
import type { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import type { RunRepository } from '#src/runtime/runs/run-repository.ts';
import type { EnvironmentActors } from '#src/runtime/sessions/environments.ts';
import type { StreamMaker } from '#src/runtime/sessions/live-sessions.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { conversationRecords } from '#storage/records/conversations.ts';
import type { RunIndexEntry } from '#storage/records/runs.ts';
import type { Removals } from '#storage/removals.ts';
import type { Store } from '#storage/store.ts';
import { AgentPrompts } from './agent-prompts.ts';
import { AgentActors } from './agent-session-actors.ts';
import { shownStatusOf, statusOf } from './agent-session-record.ts';
import { AgentSessions } from './agent-sessions.ts';
import { ConversationAccess, ownerOf } from './conversation-access.ts';
import { CONVERSATION, ConversationDeletion, type RemovePrompts } from './conversation-deletion.ts';
import { isAnswer } from './entry.ts';
import type { OutcomeOf } from './live-conversation.ts';
import { LiveConversations } from './live-conversations.ts';
import { ModelUse } from './model-use.ts';
import { type KeyVault, ModelKeys } from './models/model-keys.ts';
import { testModel } from './models/model-test.ts';
import { type LocalModel, type ModelSettings, Models } from './models/models.ts';
import type { AgentMetrics } from './prompt-turn.ts';
import type { DatasourceQueries } from './tools/datasource-tools.ts';
import type { Notebooks } from './tools/notebook-access.ts';

export interface AgentSettings extends ModelSettings {
  readonly agentMaxSteps: number;
  readonly agentMaxTokens: number;
  readonly agentTimeoutS: number;
  readonly modelSilenceS: number;
}

export interface AgentPlaneOptions {
  readonly store: Store;
  readonly runtime: ActorRuntime;
  readonly environments: EnvironmentActors;
  readonly runs: RunRepository;
  readonly removals: Removals;
  readonly removePrompts: RemovePrompts;
  readonly settings: AgentSettings;
  readonly log: Log;
  readonly metrics: AgentMetrics;
  readonly tracer?: Tracer | undefined;
  readonly makeStream: StreamMaker;
  readonly notebooks: Notebooks;
  /** Absent: agents are offered no tools for datasources. */
  readonly datasources: DatasourceQueries | undefined;
  readonly vault: KeyVault;
  readonly localModel: LocalModel | undefined;
  /** The number of this worker. */
  readonly worker: number;
  /** Returns whether a conversation is at home in this worker. */
  readonly owns: (workspaceId: string, sessionId: string) => boolean;
}

export function openAgents(options: AgentPlaneOptions) {
  const { store, runtime, environments, runs, settings, log, makeStream, notebooks, vault } = options;
  const keys = new ModelKeys(store, vault);
  const models = new Models({ settings, keys, local: options.localModel });
  const access = new ConversationAccess(store);
  const modelUse = new ModelUse(store, options.worker);
  const outcomeOf: OutcomeOf = (workspaceId, { runId }, answer) => {
    const end = runId === null ? undefined : runs.reader.endOf(workspaceId, runId);
    if (end === undefined)
      return runId === null || answer === undefined || isAnswer(answer) ? undefined : 'stale';
    return end === 'running' || end === 'completed' ? undefined : end;
  };
  const conversations: LiveConversations = new LiveConversations({
    store,
    makeStream,
    owns: options.owns,
    isBusy: (session) => statusOf(agentActors.actors.peek(session)) === 'busy',
    outcomeOf,
  });
  const agentActors: AgentActors = new AgentActors({
    store,
    runtime,
    environments,
    runs,
    conversations,
    runTimeoutMs: settings.agentTimeoutS * 1000,
    log,
  });
  const { actors, plane } = agentActors;
  const shared = { store, access, conversations, models, notebooks };
  const { removals, removePrompts } = options;
  const sessions = new AgentSessions({
    ...shared,
    actors,
    plane,
    environments,
    outcomeOf,
    owns: options.owns,
    isBeingDeleted: (workspaceId, id) =>
      removals.isPending({ kind: CONVERSATION, workspaceId, home: id, id }),
  });
  return {
    keys,
    models,
    access,
    plane,
    sessions,
    deletion: new ConversationDeletion({ store, access, sessions, removals, removePrompts }),
    prompts: new AgentPrompts({
      ...shared,
      runs,
      agentActors,
      datasources: options.datasources,
      budget: { maxSteps: settings.agentMaxSteps, maxTokens: settings.agentMaxTokens },
      silenceMs: settings.modelSilenceS * 1000,
      modelUse,
      metrics: options.metrics,
      tracer: options.tracer,
      log,
    }),
    modelUse,
    testModel: ({ workspaceId, userId }: Principal, asked: string | null, signal: AbortSignal) =>
      testModel(models, workspaceId, asked, signal, (model, usage) =>
        modelUse.add(workspaceId, userId, model, usage),
      ),
    /** Returns the open conversation of a notebook; null when there is none. */
    ofNotebook(workspaceId: WorkspaceId, notebookId: string) {
      const status = shownStatusOf(actors.peek({ workspaceId, id: notebookId }));
      const conversation =
        status === 'closed'
          ? undefined
          : unlessDamaged(() => store.get(conversationRecords, workspaceId, notebookId));
      return conversation === undefined ? null : { ownerId: ownerOf(conversation), status };
    },
    /** Calls `changed` when the state of a notebook's conversation changes. Returns a function that removes the listener. */
    watchNotebook: (workspaceId: WorkspaceId, notebookId: string, changed: () => void) =>
      actors.watch({ workspaceId, id: notebookId }, changed),
    /** Returns whether the caller may know that there is this conversation. */
    mayKnow(principal: Principal, sessionId: string): boolean {
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
