/**
 * What jobs run: a notebook on a session of its own, the open session of a notebook, or a conversation. This module says whether a
 * target can take a run now, with the rights that the owner of the job has now.
 */

import type { JobReason } from '#machines/job.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import type { Role } from '#src/base/caller/role.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { TokenId, UserId, WorkspaceId } from '#src/base/ids.ts';
import type { AgentStatus } from '#src/contract/wire/agent.ts';
import type { JobTarget } from '#src/contract/wire/job.ts';
import type { SessionStatus } from '#src/contract/wire/session.ts';
import type { JobRecord } from '#storage/records/jobs.ts';
import type { StoredJob } from './job-states.ts';

export type NotebookTarget = Extract<JobTarget, { notebookId: string }>;
export type ConversationTarget = Extract<JobTarget, { agentSessionId: string }>;

/** The rights of users, and the notebooks and conversations of jobs, as they are now. */
export interface TargetFacts {
  /** Returns the role of a user in a workspace; undefined when the user is not a member. */
  roleOf(workspaceId: WorkspaceId, userId: UserId): Role | undefined;
  /** Returns whether a role may submit runs and prompts. */
  maySubmit(role: Role): boolean;
  notebookExists(workspaceId: WorkspaceId, notebookId: string): boolean;
  /** Returns the status of the session of a notebook; undefined when none was ever opened. */
  sessionStatus(workspaceId: WorkspaceId, notebookId: string): SessionStatus | undefined;
  conversationExists(workspaceId: WorkspaceId, sessionId: string): boolean;
  /** Throws `not_found` or `conversation_read_only` when the caller cannot prompt the conversation. */
  checkUse(caller: Principal, sessionId: string): void;
  /** Returns whether the caller may know that there is this conversation. */
  mayKnow(caller: Principal, sessionId: string): boolean;
  agentStatus(workspaceId: WorkspaceId, sessionId: string): AgentStatus;
}

const RUNTIME_SCOPE = 'workspaceRuntime:connect';
const DATASOURCE_SCOPE = 'datasource:read';

const NO_SESSION: JobReason = {
  code: 'no_session',
  message: 'The notebook had no open session.',
};
const BUSY: JobReason = { code: 'busy', message: 'The session of the notebook had other work.' };
const SESSION_FAILED: JobReason = {
  code: 'session_failed',
  message: 'The session of the notebook had failed. Restart its kernel.',
};
const CONVERSATION_BUSY: JobReason = {
  code: 'conversation_busy',
  message: 'The conversation was answering another prompt.',
};
const CONVERSATION_CLOSED: JobReason = {
  code: 'conversation_closed',
  message: 'The conversation was closed.',
};

/** The refusals of a session or a conversation with which an occurrence is skipped. */
const OBSTACLES: ReadonlyMap<string, { readonly notebook: JobReason; readonly conversation: JobReason }> =
  new Map([
    ['session_busy', { notebook: BUSY, conversation: CONVERSATION_BUSY }],
    ['session_closed', { notebook: NO_SESSION, conversation: CONVERSATION_CLOSED }],
    ['session_failed', { notebook: SESSION_FAILED, conversation: CONVERSATION_CLOSED }],
  ]);

export class Targets {
  readonly #facts: TargetFacts;

  constructor(facts: TargetFacts) {
    this.#facts = facts;
  }

  /** Throws `not_found` or `conversation_read_only` unless the caller may make a job for this target. */
  check(caller: Principal, target: JobTarget): void {
    if (isConversation(target)) {
      try {
        this.#facts.checkUse(caller, target.agentSessionId);
      } catch (error) {
        throw error instanceof AppError && error.code === 'not_found'
          ? notFound('/target/agentSessionId')
          : error;
      }
    } else if (!this.#facts.notebookExists(caller.workspaceId, target.notebookId))
      throw notFound('/target/notebookId');
  }

  /**
   * Returns whether the caller may know of a job. A job for a conversation shows a prompt, so that only readers of the conversation,
   * the owner of the job and owners of the workspace know it.
   */
  mayKnow(caller: Principal, { record, definition: { target } }: StoredJob): boolean {
    return (
      !isConversation(target) ||
      record.ownerId === caller.userId ||
      caller.role === 'owner' ||
      this.#facts.mayKnow(caller, target.agentSessionId)
    );
  }

  /** Returns why a job may not work any more, so that it pauses; undefined when it may work. */
  refusal(workspaceId: WorkspaceId, { record, definition: { target } }: StoredJob): JobReason | undefined {
    const { ownerId } = record;
    const facts = this.#facts;
    const role = facts.roleOf(workspaceId, ownerId as UserId);
    if (role === undefined)
      return {
        code: 'owner_left',
        message: `The owner of the job, ${ownerId}, is no longer a member of the workspace. An owner of the workspace can take the job over.`,
      };
    if (!facts.maySubmit(role)) {
      const what = isConversation(target) ? 'prompt agents' : 'run notebooks';
      return {
        code: 'role_too_low',
        message: `The owner of the job, ${ownerId}, has the role ${role} and may not ${what} any more.`,
      };
    }
    if (!isConversation(target)) {
      if (facts.notebookExists(workspaceId, target.notebookId)) return undefined;
      return { code: 'notebook_deleted', message: `The notebook ${target.notebookId} was deleted.` };
    }
    const { agentSessionId } = target;
    if (!facts.conversationExists(workspaceId, agentSessionId))
      return { code: 'conversation_deleted', message: `The conversation ${agentSessionId} was deleted.` };
    try {
      facts.checkUse(principalOf(workspaceId, record, role), agentSessionId);
      return undefined;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return {
        code: 'conversation_not_shared',
        message: `The owner of the job, ${ownerId}, can no longer use the conversation ${agentSessionId}. Its owner can share it.`,
      };
    }
  }

  /** Returns why the target cannot take a run now, so that the instant is skipped; undefined when it can. */
  obstacle(workspaceId: WorkspaceId, { definition: { target } }: StoredJob): JobReason | undefined {
    if (isConversation(target)) {
      const status = this.#facts.agentStatus(workspaceId, target.agentSessionId);
      if (status === 'closed') return CONVERSATION_CLOSED;
      return status === 'busy' ? CONVERSATION_BUSY : undefined;
    }
    if (!isOpenSession(target)) return undefined;
    const status = this.#facts.sessionStatus(workspaceId, target.notebookId);
    if (status === undefined || status === 'closed' || status === 'closing') return NO_SESSION;
    if (status === 'failed') return SESSION_FAILED;
    return status === 'busy' ? BUSY : undefined;
  }

  /** Returns the owner of a job as the caller of its prompts. Throws `not_found` when the owner has left. */
  owner(workspaceId: WorkspaceId, record: JobRecord): Principal {
    const role = this.#facts.roleOf(workspaceId, record.ownerId as UserId);
    if (role === undefined) throw notFound();
    return principalOf(workspaceId, record, role);
  }
}

export function isConversation(target: JobTarget): target is ConversationTarget {
  return 'agentSessionId' in target;
}

/** Returns whether a job uses the open session of its notebook. */
export function isOpenSession(target: NotebookTarget): boolean {
  return 'session' in target;
}

/** Returns the notebook or conversation in whose home a job lives. */
export function homeOf(target: JobTarget): string {
  return isConversation(target) ? target.agentSessionId : target.notebookId;
}

/** Returns the reason for which an occurrence is skipped after this refusal of its target; undefined when it has failed. */
export function obstacleOf(target: JobTarget, code: string): JobReason | undefined {
  if (!isConversation(target) && !isOpenSession(target)) return undefined;
  const reasons = OBSTACLES.get(code);
  return isConversation(target) ? reasons?.conversation : reasons?.notebook;
}

function principalOf(workspaceId: WorkspaceId, record: JobRecord, role: Role): Principal {
  return {
    workspaceId,
    userId: record.ownerId as UserId,
    tokenId: '' as TokenId,
    role,
    scopes: [RUNTIME_SCOPE, ...(record.readsDatasources ? [DATASOURCE_SCOPE] : [])],
  };
}
