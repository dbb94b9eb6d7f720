/** Agent sessions in the API: opening, reading, following and closing them. Their charts decide which transitions are allowed. */

import type { Principal } from '#src/base/caller/principal.ts';
import { notFound } from '#src/base/errors/errors.ts';
import type { StateCheck } from '#src/base/errors/refusals.ts';
import { type EnvironmentId, isIdOf, type SessionId, timeText, type WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { AgentSession, AgentSessionSummary, OpenAgentSession } from '#src/contract/wire/agent.ts';
import type { Envelope } from '#src/contract/wire/events.ts';
import type { AgentSessionFilters } from '#src/contract/wire/lists.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { EventSink, Subscription } from '#src/runtime/events/event-sink.ts';
import type { StreamRequest } from '#src/runtime/sessions/session-plane.ts';
import { checkCursor, type PageRequest, pageOf, timeBounds } from '#storage/lists/listing.ts';
import type { Listing } from '#storage/lists/page-builder.ts';
import { idAt, PlaceTimes, placeOf } from '#storage/lists/places.ts';
import { type JsonPage, slicedJsonPage, slicedListing } from '#storage/lists/sliced-listing.ts';
import {
  type ConversationRecord,
  conversationPlaces,
  conversationRecords,
  entryRecords,
} from '#storage/records/conversations.ts';
import { workspaceExists } from '#storage/records/identity.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { AgentSessionActors } from './agent-session-actors.ts';
import { agentSessionSummary, agentStatusOf } from './agent-session-record.ts';
import { ownerOf } from './conversation-access.ts';
import type { ConversationContext } from './conversation-context.ts';
import { servedEntry } from './entry.ts';
import { parseModelId } from './models/model-id.ts';
import {
  conversationSessionId,
  namingNotebook,
  newConversationId,
  savedConversation,
} from './named-conversation.ts';
import { snapshotEntries } from './streamed-entries.ts';

/** The filters of a list of conversations. Absent members filter nothing. */
export type AgentSessionQuery = PageRequest & AgentSessionFilters;

export class AgentSessions {
  readonly #context: ConversationContext;
  readonly #actors: AgentSessionActors;
  readonly #times: PlaceTimes;

  constructor(context: ConversationContext) {
    this.#context = context;
    this.#actors = context.agentActors.actors;
    this.#times = new PlaceTimes(context.store, conversationPlaces);
  }

  /**
   * Opens a new or a saved conversation; `isNew` is false when it was already open in this environment with this binding. Throws,
   * without any change, `invalid_request`, `not_found`, `unknown_model`, `binding_differs`, `conversation_read_only`,
   * `conversation_not_shared`, `notebook_not_ready` and the refusals of the states of environment and session.
   */
  open(
    principal: Principal,
    request: OpenAgentSession,
  ): { readonly record: AgentSession; readonly isNew: boolean } {
    const { notebooks, store, cluster } = this.#context;
    const environments = this.#context.environments.actors;
    const actors = this.#actors;
    const { workspaceId } = principal;
    const { notebookSessionId = null } = request;
    const sessionId = conversationSessionId(request, () =>
      newConversationId(store, workspaceId, (...home) => cluster.owns(...home)),
    );
    const environmentId = request.environmentId as EnvironmentId;
    const environment = { workspaceId, id: environmentId };
    if (!workspaceExists(store, workspaceId)) throw notFound();
    if (request.config?.model != null) parseModelId(request.config.model);
    const before = savedConversation(this.#context, principal, sessionId, request);
    if (environments.peek(environment) === undefined) throw notFound('/environmentId');
    if (notebookSessionId !== null)
      namingNotebook(() => notebooks.checkBinding(workspaceId, notebookSessionId, environmentId));

    const session = { workspaceId, id: sessionId };
    this.#ensureAwake(session);
    const peek = actors.peek(session);
    const isOpen = agentStatusOf(peek) !== 'closed';
    const isSame = isOpen && peek?.snapshot.context.environmentId === environmentId;
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

  /** Throws when the caller may not use the conversation that the request names. */
  checkOpen(principal: Principal, request: OpenAgentSession): void {
    savedConversation(this.#context, principal, conversationSessionId(request), request);
  }

  /**
   * Resolves once `open` can decide without much reading and the session named by the request is awake. Rejects with the error of
   * `checkOpen`, and when the signal aborts.
   */
  async prepareOpen(
    principal: Principal,
    request: OpenAgentSession,
    signalOf: () => AbortSignal,
  ): Promise<void> {
    const { conversations, notebooks } = this.#context;
    const { workspaceId } = principal;
    const { notebookSessionId } = request;
    const sessionId = conversationSessionId(request);
    savedConversation(this.#context, principal, sessionId, request);
    await conversations.prepare({ workspaceId, id: sessionId });
    if (notebookSessionId == null) return;
    const environmentId = request.environmentId as EnvironmentId;
    await notebooks.prepareBinding(workspaceId, notebookSessionId, environmentId, signalOf);
  }

  /**
   * Returns the result of `use`, which reads a conversation. Waits first until the conversation is in memory, unless it is short.
   * Throws `not_found` at once.
   */
  whenReadable<T>(principal: Principal, sessionId: string, use: () => T): T | Promise<T> {
    const { access, conversations } = this.#context;
    access.readable(principal, sessionId);
    const prepared = conversations.prepare({ workspaceId: principal.workspaceId, id: sessionId });
    return prepared === undefined ? use() : prepared.then(use);
  }

  /** Throws `not_found`, or `conversation_read_only`. */
  checkUse(principal: Principal, sessionId: string): void {
    this.#context.access.usable(principal, sessionId);
  }

  /** Returns whether the session is closed. Throws `not_found`. */
  isClosed(principal: Principal, sessionId: string): boolean {
    const { access } = this.#context;
    access.readable(principal, sessionId);
    return (
      agentStatusOf(this.#actors.peek({ workspaceId: principal.workspaceId, id: sessionId })) === 'closed'
    );
  }

  /** Makes a member the owner of a conversation. Throws the errors of `ConversationAccess.handOver`. */
  handOver(principal: Principal, sessionId: string, userId: string): AgentSessionSummary {
    const record = this.#context.access.handOver(principal, sessionId, userId);
    return this.#summary(principal.workspaceId, sessionId, record);
  }

  /**
   * Resolves with a page of the conversations that the caller may read, by the time at which they were created. Rejects with
   * `invalid_cursor`.
   */
  async list(principal: Principal, query: AgentSessionQuery): Promise<Listing<AgentSessionSummary>> {
    const { store, access } = this.#context;
    const { workspaceId } = principal;
    checkCursor(query.after, (text) => isConversationId(idAt(text)));
    const bounds = timeBounds(query, timeText);
    return slicedListing(store, {
      page: query,
      workspaceId,
      entriesAfter: (after) =>
        store.list(conversationPlaces, workspaceId, [], pageOf({ ...query, after }, bounds)),
      itemOf: (_, place) => {
        const id = idAt(place);
        const record = store.get(conversationRecords, workspaceId, id);
        if (record === undefined || !access.mayRead(principal, id, record)) return undefined;
        const summary = this.#summary(workspaceId, id, record);
        return hasStatus(summary, query.status) ? summary : undefined;
      },
    });
  }

  /** Returns the session in the form that the API returns. Throws `not_found`. */
  record(principal: Principal, sessionId: string): AgentSession {
    this.#context.access.readable(principal, sessionId);
    this.#ensureAwake({ workspaceId: principal.workspaceId, id: sessionId });
    this.#context.store.noteReadOfAll(); // the history of a live conversation is read from memory
    return this.#record(principal.workspaceId, sessionId);
  }

  /**
   * Closes the session; its history stays. Throws `not_found`, `conversation_read_only`, `session_closed`, or the error
   * of `checkState` for the current session.
   */
  close(
    principal: Principal,
    sessionId: string,
    checkState: StateCheck<() => AgentSession> = () => {},
  ): AgentSession {
    const { access } = this.#context;
    const { workspaceId } = principal;
    const session = { workspaceId, id: sessionId };
    access.checkControl(principal, sessionId);
    this.#actors.check(session, { type: 'close' });
    checkState(() => this.#record(workspaceId, sessionId));
    this.#actors.ask(session, { type: 'close', by: principal.userId });
    return this.#record(workspaceId, sessionId);
  }

  /**
   * Closes a session that is to be deleted and returns the function that erases it, in the same turn. Throws
   * `session_busy`, without any change, while a prompt runs in it.
   */
  prepareDeletion(session: ActorId): (tx: Transaction) => void {
    const actors = this.#actors;
    this.#ensureAwake(session);
    actors.checkStored(session, { type: 'delete' });
    actors.tell(session, { type: 'close' });
    return (tx) => {
      actors.erase(tx, session);
      this.#context.conversations.forget(session);
    };
  }

  /** Resolves with a page of the entries of a conversation. Rejects with `not_found` or `invalid_cursor`. */
  async entries(principal: Principal, sessionId: string, page: PageRequest): Promise<JsonPage> {
    const { access, store, outcomeOf } = this.#context;
    access.readable(principal, sessionId);
    checkCursor(page.after, (text) => isIdOf('entry', text));
    const { workspaceId } = principal;
    return slicedJsonPage(store, {
      page,
      workspaceId,
      entriesAfter: (after) => store.list(entryRecords, workspaceId, [sessionId], pageOf({ ...page, after })),
      itemOf: ({ document }) => servedEntry(document, (prompt) => outcomeOf(workspaceId, prompt)),
    });
  }

  /** Closes the agent that is bound to this notebook session, if there is one, in the name of the user `by`. */
  closeBound(workspaceId: WorkspaceId, notebookSessionId: string, by: string | undefined): void {
    this.#actors.tell({ workspaceId, id: notebookSessionId }, { type: 'close', by });
  }

  /**
   * Returns a function that attaches a subscriber, which gets the snapshot, missed events, the history, then live
   * events; undefined when the session is closed. An observer changes nothing. Throws `not_found` at once.
   */
  subscribe(
    principal: Principal,
    sessionId: string,
    { lastEventId, observe }: StreamRequest,
  ): ((sink: EventSink) => Subscription) | undefined {
    const { access, agentActors } = this.#context;
    const actors = this.#actors;
    const observes = observe || actors.isReadOnly;
    access.readable(principal, sessionId);
    const session = { workspaceId: principal.workspaceId, id: sessionId };
    if (!observes) this.#ensureAwake(session);
    if (agentStatusOf(actors.peek(session)) === 'closed') return undefined;
    const attach = agentActors.plane.follow(session, {
      lastEventId,
      observes,
      replay: () => this.#replay(session),
    });
    return access.followers.noted(principal, sessionId, attach);
  }

  #save(
    { workspaceId, userId }: Principal,
    sessionId: SessionId,
    before: ConversationRecord | undefined,
    { notebookSessionId, config = {}, context = {} }: OpenAgentSession,
  ): void {
    const now = before === undefined ? this.#times.next(workspaceId) : timestamp();
    const { model, instructions } = config;
    // Only the owner chooses datasources. If another user sends the same list, the choice still counts as the first user's.
    const isChosen =
      context.datasourceSlugs !== undefined && (before === undefined || ownerOf(before) === userId);
    const record: ConversationRecord = {
      createdBy: userId,
      ...before,
      createdAt: before?.createdAt ?? now,
      updatedAt: now,
      notebookSessionId: notebookSessionId ?? null,
      model: model === undefined ? (before?.model ?? null) : model,
      instructions: instructions === undefined ? (before?.instructions ?? null) : instructions,
      datasourceSlugs: context.datasourceSlugs ?? before?.datasourceSlugs ?? [],
      ...(isChosen && { datasourcesChosenBy: userId }),
    };
    this.#context.store.write((tx) => {
      tx.put(conversationRecords, record, workspaceId, sessionId);
      if (before === undefined)
        tx.mark(conversationPlaces, workspaceId, placeOf(record.createdAt, sessionId));
    });
  }

  /**
   * Restores a session whose prompt was interrupted by the end of the server: the session forgets the prompt before it does
   * anything else.
   */
  #ensureAwake(session: ActorId): void {
    const actors = this.#actors;
    const peek = actors.peek(session);
    if (peek !== undefined && !peek.live && agentStatusOf(peek) === 'busy') actors.restore(session);
  }

  #summary(workspaceId: WorkspaceId, sessionId: string, record: ConversationRecord): AgentSessionSummary {
    const { models } = this.#context;
    const peek = this.#actors.peek({ workspaceId, id: sessionId });
    return agentSessionSummary(sessionId, record, peek, models.defaultModel);
  }

  #record(workspaceId: WorkspaceId, sessionId: string): AgentSession {
    const { store, conversations } = this.#context;
    const record = store.get(conversationRecords, workspaceId, sessionId);
    if (record === undefined) throw notFound();
    const entries = conversations.of({ workspaceId, id: sessionId }).entries.map(({ entry }) => entry);
    return { ...this.#summary(workspaceId, sessionId, record), entries };
  }

  #replay(session: ActorId): Envelope[] {
    const { conversations, agentActors } = this.#context;
    const { workspaceId, id: sessionId } = session;
    const latest = agentActors.plane.latestRunStatus(session);
    const record = this.#record(workspaceId, sessionId);
    const snapshot = { ...record, entries: snapshotEntries(record.entries) };
    return [
      { type: 'session.snapshot', sessionId, data: snapshot },
      ...conversations.of(session).replay(),
      ...(latest === undefined ? [] : [latest]),
    ];
  }
}

/** Returns whether the text has the form of a conversation's id; the id of a bound conversation has the form of a notebook's. */
function isConversationId(text: string): boolean {
  return isIdOf('conversation', text) || isIdOf('notebook', text);
}

function hasStatus({ status }: AgentSessionSummary, wanted: AgentSessionQuery['status']): boolean {
  if (wanted === undefined) return true;
  return wanted === 'open' ? status !== 'closed' : status === wanted;
}
