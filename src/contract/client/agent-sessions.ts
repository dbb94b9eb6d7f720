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
  type RequestOptions,
  type WaitOptions,
} from './connection.ts';
import { type FollowOptions, followEvents } from './event-stream.ts';
import { callOf, operation, pagesOf, taggedCallOf } from './operation.ts';
import type { OrderedPageOptions, PageOptions } from './paging.ts';

export interface PromptOptions extends PostOptions {
  /** How many seconds the prompt may take; it is then interrupted, and its run has failed. */
  readonly timeoutS?: number | undefined;
  /** Pairs of texts that the run shows, and by which lists are filtered. */
  readonly metadata?: Metadata | undefined;
}

/** Conversations with agents. */
export function agentSessions(connection: Connection) {
  const prompts = pagesOf<'listPrompts', PageOptions & SessionRunsFilters>(connection, 'listPrompts');
  const entries = pagesOf<'listConversationEntries', OrderedPageOptions>(
    connection,
    'listConversationEntries',
  );
  return {
    /** Opens a new conversation, or a saved one again. */
    open: (request: OpenAgentSession, options: PostOptions = {}) =>
      connection.json(operation('openAgentSession', { body: request, ...options })),
    get: callOf(connection, 'getAgentSession'),
    getTagged: taggedCallOf(connection, 'getAgentSession'),
    ...pagesOf<'listAgentSessions', PageOptions & AgentSessionFilters>(connection, 'listAgentSessions'),
    /** Returns a ticket with which a browser's `EventSource` opens the session's stream, once. */
    eventTicket: callOf(connection, 'createAgentEventTicket'),
    /** Closes it. The history is kept. */
    close: callOf(connection, 'closeAgentSession'),
    /** Deletes the conversation for ever, with its entries, prompts and assets. */
    delete: callOf(connection, 'deleteConversation'),
    entries: entries.list,
    eachEntry: entries.each,
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
    listRuns: prompts.list,
    eachRun: prompts.each,
    /** Yields the history and then live events, across reconnects, until the conversation closes. */
    follow: (sessionId: string, options: FollowOptions = {}) =>
      followEvents<AgentStreamEvent>(connection, pathOf('followAgentSession', { sessionId }), options),
    /** Makes a member its owner. The owner until then can still use it. */
    handOver: (sessionId: string, userId: string, options: RequestOptions = {}) =>
      connection.json(
        operation('handOverAgentSession', { params: { sessionId }, body: { userId }, ...options }),
      ),
    grants: callOf(connection, 'listAgentSessionGrants'),
    grant: (sessionId: string, userId: string, options: PostOptions = {}) =>
      connection.json(
        operation('grantAgentSession', { params: { sessionId }, body: { userId }, ...options }),
      ),
    revoke: callOf(connection, 'revokeAgentSessionGrant'),
  };
}
