import type {
  AgentEntry,
  AgentSession,
  AgentSessionGrant,
  AgentSessionGrantList,
  AgentSessionSummary,
  OpenAgentSession,
} from '#src/wire/agent.ts';
import type { EventTicket } from '#src/wire/event-ticket.ts';
import type { AgentStreamEvent } from '#src/wire/events.ts';
import type { AgentSessionFilters, SessionRunsFilters } from '#src/wire/finding.ts';
import type { AgentRun, SubmittedRun } from '#src/wire/run.ts';
import type { Page } from '#src/wire/shape.ts';
import {
  type Connection,
  DEFAULT_WAIT_S,
  type PostOptions,
  path,
  type ReadOptions,
  type RequestOptions,
  type WaitOptions,
  type WriteOptions,
} from './connection.ts';
import { type FollowOptions, followEvents } from './event-stream.ts';
import { eachItem, type OrderedPageOptions, type PageOptions } from './paging.ts';

const ROOT = '/api/v3/agent-sessions';

/** Conversations with agents. */
export function agentSessions(connection: Connection) {
  const list = ({ signal, ...query }: PageOptions & AgentSessionFilters = {}) =>
    connection.json<Page<AgentSessionSummary>>({
      method: 'GET',
      path: ROOT,
      query,
      signal,
    });
  const listRuns = (sessionId: string, { signal, ...query }: PageOptions & SessionRunsFilters = {}) =>
    connection.json<Page<AgentRun>>({
      method: 'GET',
      path: ROOT + path`/${sessionId}/runs`,
      query,
      signal,
    });
  const entries = (sessionId: string, { signal, ...query }: OrderedPageOptions = {}) =>
    connection.json<Page<AgentEntry>>({
      method: 'GET',
      path: ROOT + path`/${sessionId}/entries`,
      query,
      signal,
    });
  return {
    /** Opens a new conversation, or a saved one again. */
    open: (request: OpenAgentSession, options: PostOptions = {}) =>
      connection.json<AgentSession>({ method: 'POST', path: ROOT, body: request, ...options }),
    get: (sessionId: string, options: RequestOptions = {}) =>
      connection.json<AgentSession>({ method: 'GET', path: ROOT + path`/${sessionId}`, ...options }),
    getTagged: (sessionId: string, options: ReadOptions = {}) =>
      connection.tagged<AgentSession>({ method: 'GET', path: ROOT + path`/${sessionId}`, ...options }),
    list,
    each: (options: PageOptions & AgentSessionFilters = {}) => eachItem(list, options),
    /** Returns a ticket with which a browser's `EventSource` opens the session's stream, once. */
    eventTicket: (sessionId: string, options: PostOptions = {}) =>
      connection.json<EventTicket>({
        method: 'POST',
        path: ROOT + path`/${sessionId}/event-tickets`,
        ...options,
      }),
    /** Closes it. The history is kept. */
    close: (sessionId: string, options: WriteOptions = {}) =>
      connection.json<AgentSession>({ method: 'DELETE', path: ROOT + path`/${sessionId}`, ...options }),
    /** Deletes the conversation for ever, with its entries, prompts and assets. */
    delete: (sessionId: string, options: RequestOptions = {}) =>
      connection.json<void>({
        method: 'DELETE',
        path: ROOT + path`/${sessionId}/conversation`,
        ...options,
      }),
    entries,
    eachEntry: (sessionId: string, options: OrderedPageOptions = {}) =>
      eachItem((page: OrderedPageOptions) => entries(sessionId, page), options),
    /** Resolves once the prompt is accepted and stored; `waitForRun` tells how it ended. */
    prompt: (sessionId: string, prompt: string, options: PostOptions = {}) =>
      connection.json<SubmittedRun>({
        method: 'POST',
        path: ROOT + path`/${sessionId}/runs`,
        body: { prompt },
        ...options,
      }),
    /** Prompts and resolves with the run once it has ended; with the accepted submission when `wait` seconds have passed. */
    ask: (
      sessionId: string,
      prompt: string,
      { wait = DEFAULT_WAIT_S, ...options }: PostOptions & WaitOptions = {},
    ) =>
      connection.json<AgentRun | SubmittedRun>({
        method: 'POST',
        path: ROOT + path`/${sessionId}/runs`,
        query: { wait },
        body: { prompt },
        ...options,
      }),
    listRuns,
    eachRun: (sessionId: string, options: PageOptions & SessionRunsFilters = {}) =>
      eachItem((page: PageOptions & SessionRunsFilters) => listRuns(sessionId, page), options),
    /** Yields the history and then live events, across reconnects, until the conversation closes. */
    follow: (sessionId: string, options: FollowOptions = {}) =>
      followEvents<AgentStreamEvent>(connection, ROOT + path`/${sessionId}/events`, options),
    /** Makes a member its owner. The owner until then can still use it. */
    handOver: (sessionId: string, userId: string, options: RequestOptions = {}) =>
      connection.json<AgentSessionSummary>({
        method: 'PUT',
        path: ROOT + path`/${sessionId}/owner`,
        body: { userId },
        ...options,
      }),
    grants: (sessionId: string, options: RequestOptions = {}) =>
      connection.json<AgentSessionGrantList>({
        method: 'GET',
        path: ROOT + path`/${sessionId}/grants`,
        ...options,
      }),
    grant: (sessionId: string, userId: string, options: PostOptions = {}) =>
      connection.json<AgentSessionGrant>({
        method: 'POST',
        path: ROOT + path`/${sessionId}/grants`,
        body: { userId },
        ...options,
      }),
    revoke: (sessionId: string, userId: string, options: RequestOptions = {}) =>
      connection.json<void>({
        method: 'DELETE',
        path: ROOT + path`/${sessionId}/grants/${userId}`,
        ...options,
      }),
  };
}
