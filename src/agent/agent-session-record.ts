/** An agent session in the form that the API returns. */
import { type agentSessionMachine, agentStatus } from '#machines/agent-session.ts';
import type { AgentSessionSummary, AgentStatus } from '#src/contract/wire/agent.ts';
import type { Peek } from '#src/runtime/actors/actor-definition.ts';
import type { ConversationRecord } from '#storage/records/conversations.ts';
import { ownerOf } from './conversation-access.ts';

type AgentPeek = Peek<typeof agentSessionMachine>;

export function agentStatusOf(peek: AgentPeek | undefined): AgentStatus {
  return peek === undefined ? 'closed' : agentStatus(peek.snapshot);
}

/** Returns the status to show. The record of a server that is gone says busy: nothing runs until the session is used again. */
export function shownStatusOf(peek: AgentPeek | undefined): AgentStatus {
  const status = agentStatusOf(peek);
  return status === 'busy' && peek?.isLost !== false ? 'ready' : status;
}

export function agentSessionSummary(
  sessionId: string,
  record: ConversationRecord,
  peek: AgentPeek | undefined,
  defaultModel: string | null,
): AgentSessionSummary {
  const { notebookSessionId, model, instructions, datasourceSlugs, createdBy, createdAt } = record;
  const status = shownStatusOf(peek);
  const isLost = status !== agentStatusOf(peek);
  const closedBy = status === 'closed' ? (peek?.snapshot.context.closedBy ?? null) : null;
  return {
    sessionId,
    environmentId: peek === undefined ? null : peek.snapshot.context.environmentId,
    notebookSessionId,
    ownerId: ownerOf(record),
    createdBy,
    status,
    ...(closedBy === null ? {} : { closedBy }),
    config: { model: model ?? defaultModel, instructions },
    context: { datasourceSlugs },
    currentRunId: peek === undefined || isLost ? null : (peek.snapshot.context.run?.id ?? null),
    createdAt,
    updatedAt: peek !== undefined && peek.updatedAt > record.updatedAt ? peek.updatedAt : record.updatedAt,
  };
}
