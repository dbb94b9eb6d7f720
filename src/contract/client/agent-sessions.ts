import type { OpenAgentSession } from '../wire/agent.ts';
import type { AgentStreamEvent } from '../wire/events.ts';
import type { AgentSessionFilters, SessionRunsFilters } from '../wire/lists.ts';
import { pathOf } from '../wire/paths.ts';
import type { Metadata } from '../wire/shape.ts';
import {
  type Connection,
  DEFAULT_WAIT_S,
  type PostOptions,
  present,
  type ReadOptions,
  type RequestOptions,
  type WaitOptions,
  type WriteOptions,
} from './connection.ts';
import { type FollowOptions, followEvents } from './event-stream.ts';
import { operation } from './operation.ts';
import { eachItem, type OrderedPageOptions, type PageOptions } from './paging.ts';

export interface PromptOptions extends PostOptions {
  /** How many seconds the prompt may take; it is then interrupted, and its run has failed. */
  readonly timeoutS?: number | undefined;
  /** Pairs of texts that the run shows, and by which lists are filtered. */
  readonly metadata?: Metadata | undefined;
}

/** Conversations with agents. */
export function agentSessions(connection: Connection) {
  const list = ({ signal, ...query }: PageOptions & AgentSessionFilters = {}) =>
    connection.json(operation('listAgentSessions', { query, signal }));
  const listRuns = (sessionId: string, { signal, ...query }: PageOptions & SessionRunsFilters = {}) =>
    connection.json(operation('listPrompts', { params: { sessionId }, query, signal }));
  const entries = (sessionId: string, { signal, ...query }: OrderedPageOptions = {}) =>
    connection.json(operation('listConversationEntries', { params: { sessionId }, query, signal }));
  return {
    /** Opens a new conversation, or a saved one again. */
    open: (request: OpenAgentSession, options: PostOptions = {}) =>
      connection.json(operation('openAgentSession', { body: request, ...options })),
    get: (sessionId: string, options: RequestOptions = {}) =>
      connection.json(operation('getAgentSession', { params: { sessionId }, ...options })),
    getTagged: (sessionId: string, options: ReadOptions = {}) =>
      connection.tagged(operation('getAgentSession', { params: { sessionId }, ...options })),
    list,
    each: (options: PageOptions & AgentSessionFilters = {}) => eachItem(list, options),
    /** Returns a ticket with which a browser's `EventSource` opens the session's stream, once. */
    eventTicket: (sessionId: string, options: PostOptions = {}) =>
      connection.json(operation('createAgentEventTicket', { params: { sessionId }, ...options })),
    /** Closes it. The history is kept. */
    close: (sessionId: string, options: WriteOptions = {}) =>
      connection.json(operation('closeAgentSession', { params: { sessionId }, ...options })),
    /** Deletes the conversation for ever, with its entries, prompts and assets. */
    delete: (sessionId: string, options: RequestOptions = {}) =>
      connection.json(operation('deleteConversation', { params: { sessionId }, ...options })),
    entries,
    eachEntry: (sessionId: string, options: OrderedPageOptions = {}) =>
      eachItem((page: OrderedPageOptions) => entries(sessionId, page), options),
    /** Resolves once the prompt is accepted and stored; `waitForRun` tells how it ended. */
    prompt: (sessionId: string, prompt: string, { timeoutS, metadata, ...options }: PromptOptions = {}) =>
      connection.json(
        operation<'submitPrompt', 202>('submitPrompt', {
          params: { sessionId },
          body: { prompt, ...present({ timeoutS, metadata }) },
          ...options,
        }),
      ),
    /** Prompts and resolves with the run once it has ended; with the accepted submission when `wait` seconds have passed. */
    ask: (
      sessionId: string,
      prompt: string,
      { wait = DEFAULT_WAIT_S, timeoutS, metadata, ...options }: PromptOptions & WaitOptions = {},
    ) =>
      connection.json(
        operation('submitPrompt', {
          params: { sessionId },
          query: { wait },
          body: { prompt, ...present({ timeoutS, metadata }) },
          ...options,
        }),
      ),
    listRuns,
    eachRun: (sessionId: string, options: PageOptions & SessionRunsFilters = {}) =>
      eachItem((page: PageOptions & SessionRunsFilters) => listRuns(sessionId, page), options),
    /** Yields the history and then live events, across reconnects, until the conversation closes. */
    follow: (sessionId: string, options: FollowOptions = {}) =>
      followEvents<AgentStreamEvent>(connection, pathOf('followAgentSession', { sessionId }), options),
    /** Makes a member its owner. The owner until then can still use it. */
    handOver: (sessionId: string, userId: string, options: RequestOptions = {}) =>
      connection.json(
        operation('handOverAgentSession', { params: { sessionId }, body: { userId }, ...options }),
      ),
    grants: (sessionId: string, options: RequestOptions = {}) =>
      connection.json(operation('listAgentSessionGrants', { params: { sessionId }, ...options })),
    grant: (sessionId: string, userId: string, options: PostOptions = {}) =>
      connection.json(
        operation('grantAgentSession', { params: { sessionId }, body: { userId }, ...options }),
      ),
    revoke: (sessionId: string, userId: string, options: RequestOptions = {}) =>
      connection.json(operation('revokeAgentSessionGrant', { params: { sessionId, userId }, ...options })),
  };
}
