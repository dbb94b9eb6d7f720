/** Agent sessions as the API offers them: opened, read, followed, closed. Their charts decide what may happen. */
import type { ActorId } from '#src/actors/address.ts';
import { timestamp } from '#src/core/clock.ts';
import { AppError, notFound } from '#src/core/errors.ts';
import { type EnvironmentId, newId, type SessionId, type WorkspaceId } from '#src/core/ids.ts';
import type { Principal } from '#src/core/principal.ts';
import type { EventSink, Subscription } from '#src/events/event-sink.ts';
import type { EnvironmentActors } from '#src/sessions/environments.ts';
import type { SessionPlane } from '#src/sessions/session-plane.ts';
import type { Envelope } from '#src/wire/events.ts';
import { type ConversationRecord, conversationRecords } from '#storage/conversations.ts';
import { invalidCursor, type Listing, listingOf, type PageRequest } from '#storage/listing.ts';
import type { Entry, Store } from '#storage/store.ts';
import type { AgentSessionActors } from './agent-session-actors.ts';
import {
  type AgentSessionRecord,
  type AgentSessionSummary,
  agentSessionSummary,
  statusOf,
} from './agent-session-record.ts';
import type { ConversationAccess } from './conversation-access.ts';
import type { LiveConversation } from './live-conversation.ts';
import type { LiveConversations } from './live-conversations.ts';
import { parseModelId } from './models/model-id.ts';
import type { Models } from './models/models.ts';
import type { Notebooks } from './tools/notebook-access.ts';

export interface OpenAgentRequest {
  readonly environmentId: string;
  readonly notebookSessionId?: string;
  readonly id?: string;
  /** Omitted members stay what they are; null is the default. */
  readonly config?: { readonly model?: string | null; readonly instructions?: string | null };
  readonly context?: { readonly datasourceSlugs?: readonly string[] };
}

export interface AgentSessionsOptions {
  readonly store: Store;
  readonly actors: AgentSessionActors;
  readonly environments: EnvironmentActors;
  readonly plane: SessionPlane<LiveConversation>;
  readonly access: ConversationAccess;
  readonly conversations: LiveConversations;
  readonly models: Models;
  readonly notebooks: Notebooks;
}

export class AgentSessions {
  readonly #options: AgentSessionsOptions;

  constructor(options: AgentSessionsOptions) {
    this.#options = options;
  }

  /**
   * Opens a new conversation or one that is saved; `isNew` is false when it was open already, in this environment with
   * this binding. Throws `invalid_request`, `not_found`, `unknown_model`, `conversation_read_only`, `binding_differs`,
   * `notebook_not_ready`, `environment_differs`, `environment_closed` or `session_exists`; nothing has changed then.
   */
  open(
    principal: Principal,
    request: OpenAgentRequest,
  ): { readonly record: AgentSessionRecord; readonly isNew: boolean } {
    const { actors, environments, notebooks } = this.#options;
    const { workspaceId } = principal;
    const { notebookSessionId = null } = request;
    const sessionId = this.#sessionIdOf(request);
    const environmentId = request.environmentId as EnvironmentId;
    const environment = { workspaceId, id: environmentId };
    if (request.config?.model != null) parseModelId(request.config.model);
    const before = this.#saved(principal, sessionId, request);
    if (environments.peek(environment) === undefined) throw notFound('/environmentId');
    if (notebookSessionId !== null) notebooks.checkBinding(workspaceId, notebookSessionId, environmentId);

    const session = { workspaceId, id: sessionId };
    this.#ensureAwake(session);
    const peek = actors.peek(session);
    const isOpen = statusOf(peek) !== 'closed';
    const isSame = peek !== undefined && isOpen && peek.snapshot.context.environmentId === environmentId;
    const binding = notebookSessionId === null ? null : sessionId;
    const open = { type: 'open', environmentId, notebookSessionId: binding, at: timestamp() } as const;
    if (!isSame) {
      environments.check(environment, { type: 'attachAgent', sessionId });
      if (peek === undefined) actors.spawn(session, { workspaceId, sessionId });
      actors.ask(session, open);
      environments.ask(environment, { type: 'attachAgent', sessionId });
    }
    this.#save(principal, sessionId, before, request);
    return { record: this.#record(workspaceId, sessionId), isNew: !isSame };
  }

  /** Returns the conversations that the caller may read, by id. */
  list(principal: Principal, { after, limit }: PageRequest): Listing<AgentSessionSummary> {
    const { store } = this.#options;
    const { workspaceId } = principal;
    if (after !== undefined && store.get(conversationRecords, workspaceId, after) === undefined) {
      throw invalidCursor();
    }
    return listingOf(this.#readable(principal, after), limit, (record, id) =>
      this.#summary(workspaceId, id, record),
    );
  }

  /** Returns the session as it is served. Throws `not_found`. */
  record(principal: Principal, sessionId: string): AgentSessionRecord {
    this.#options.access.readable(principal, sessionId);
    this.#ensureAwake({ workspaceId: principal.workspaceId, id: sessionId });
    this.#options.store.noteReadOfAll(); // the history of a live conversation is read from memory
    return this.#record(principal.workspaceId, sessionId);
  }

  /** Closes the session; its history stays. Throws `not_found`, `conversation_read_only` or `session_closed`. */
  close(principal: Principal, sessionId: string): AgentSessionRecord {
    const { access, actors } = this.#options;
    const { workspaceId } = principal;
    access.usable(principal, sessionId);
    actors.ask({ workspaceId, id: sessionId }, { type: 'close' });
    return this.#record(workspaceId, sessionId);
  }

  /** Closes the agent that is bound to this notebook session, if there is one. */
  closeBound(workspaceId: WorkspaceId, notebookSessionId: string): void {
    this.#options.actors.tell({ workspaceId, id: notebookSessionId }, { type: 'close' });
  }

  /**
   * Returns what attaches a subscriber: snapshot, history, then live events. The stream of a closed session ends after the
   * history. Throws `not_found` at once.
   */
  subscribe(principal: Principal, sessionId: string, lastEventId: string): (sink: EventSink) => Subscription {
    const { access, actors, plane } = this.#options;
    access.readable(principal, sessionId);
    const session = { workspaceId: principal.workspaceId, id: sessionId };
    this.#ensureAwake(session);
    return plane.follow(session, {
      lastEventId,
      isClosed: () => statusOf(actors.peek(session)) === 'closed',
      replay: () => this.#replay(session),
    });
  }

  #sessionIdOf({ id, notebookSessionId }: OpenAgentRequest): SessionId {
    if (id !== undefined && notebookSessionId !== undefined && id !== notebookSessionId) {
      throw new AppError('invalid_request', 'A bound conversation has the id of its notebook session.', {
        errors: [{ path: '/id', message: 'must be notebookSessionId when both are given' }],
      });
    }
    return (notebookSessionId ?? id ?? newId<SessionId>('conversation')) as SessionId;
  }

  /** What is saved of the conversation; undefined for a new one. */
  #saved(
    principal: Principal,
    sessionId: SessionId,
    { id, notebookSessionId }: OpenAgentRequest,
  ): ConversationRecord | undefined {
    const { access, store } = this.#options;
    const isKnown = store.get(conversationRecords, principal.workspaceId, sessionId) !== undefined;
    if (!isKnown) {
      if (id !== undefined && notebookSessionId === undefined) throw notFound('/id');
      return undefined;
    }
    const record = access.usable(principal, sessionId);
    if (record.notebookSessionId !== (notebookSessionId ?? null)) {
      const detail = `The conversation ${sessionId} is bound to the notebook session ${record.notebookSessionId}: name it.`;
      throw new AppError('binding_differs', detail);
    }
    return record;
  }

  #save(
    { workspaceId, userId }: Principal,
    sessionId: SessionId,
    before: ConversationRecord | undefined,
    { notebookSessionId, config = {}, context = {} }: OpenAgentRequest,
  ): void {
    const now = timestamp();
    const { model, instructions } = config;
    const record: ConversationRecord = {
      createdBy: before?.createdBy ?? userId,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
      notebookSessionId: notebookSessionId ?? null,
      model: model === undefined ? (before?.model ?? null) : model,
      instructions: instructions === undefined ? (before?.instructions ?? null) : instructions,
      datasourceSlugs: context.datasourceSlugs ?? before?.datasourceSlugs ?? [],
    };
    this.#options.store.write((tx) => tx.put(conversationRecords, record, workspaceId, sessionId));
  }

  *#readable(principal: Principal, after: string | undefined): Generator<Entry<ConversationRecord>> {
    const { store, access } = this.#options;
    const page = { after, limit: Number.POSITIVE_INFINITY };
    for (const entry of store.list(conversationRecords, principal.workspaceId, [], page)) {
      if (access.mayRead(principal, entry.id, entry.value)) yield entry;
    }
  }

  /** Restores a session whose prompt a dead server left behind: it forgets the prompt before it does anything else. */
  #ensureAwake(session: ActorId): void {
    const { actors } = this.#options;
    const peek = actors.peek(session);
    if (peek !== undefined && !peek.live && statusOf(peek) === 'busy') actors.restore(session);
  }

  #summary(workspaceId: WorkspaceId, sessionId: string, record: ConversationRecord): AgentSessionSummary {
    const { actors, models } = this.#options;
    const peek = actors.peek({ workspaceId, id: sessionId });
    return agentSessionSummary(sessionId, record, peek, models.defaultModel);
  }

  #record(workspaceId: WorkspaceId, sessionId: string): AgentSessionRecord {
    const { store, conversations } = this.#options;
    const record = store.get(conversationRecords, workspaceId, sessionId);
    if (record === undefined) throw notFound();
    const live = conversations.of({ workspaceId, id: sessionId });
    const entries = live.entries.map(({ entry }) => entry);
    return { ...this.#summary(workspaceId, sessionId, record), entries };
  }

  #replay(session: ActorId): Envelope[] {
    const { conversations, plane } = this.#options;
    const { workspaceId, id: sessionId } = session;
    const latest = plane.latestRunStatus(session);
    return [
      { type: 'session.snapshot', sessionId, data: this.#record(workspaceId, sessionId) },
      ...conversations.of(session).replay(),
      ...(latest === undefined ? [] : [latest]),
    ];
  }
}
