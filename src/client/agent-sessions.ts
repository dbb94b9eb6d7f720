import type {
  AgentSession,
  AgentSessionGrant,
  AgentSessionGrantList,
  AgentSessionSummary,
  OpenAgentSession,
} from '#src/wire/agent.ts';
import type { AgentStreamEvent } from '#src/wire/events.ts';
import type { AgentRun, SubmittedRun } from '#src/wire/run.ts';
import type { Page } from '#src/wire/shape.ts';
import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';
import { type FollowOptions, followEvents } from './event-stream.ts';
import { eachItem, type PageOptions } from './paging.ts';

const ROOT = '/api/v3/agent-sessions';

/** Conversations with agents. */
export function agentSessions(connection: Connection) {
  const list = ({ after, limit, signal }: PageOptions = {}) =>
    connection.json<Page<AgentSessionSummary>>({
      method: 'GET',
      path: ROOT,
      query: { after, limit },
      signal,
    });
  const listRuns = (sessionId: string, { after, limit, signal }: PageOptions = {}) =>
    connection.json<Page<AgentRun>>({
      method: 'GET',
      path: ROOT + path`/${sessionId}/runs`,
      query: { after, limit },
      signal,
    });
  return {
    /** Opens a new conversation, or a saved one again. */
    open: (request: OpenAgentSession, options: PostOptions = {}) =>
      connection.json<AgentSession>({ method: 'POST', path: ROOT, body: request, ...options }),
    get: (sessionId: string, options: RequestOptions = {}) =>
      connection.json<AgentSession>({ method: 'GET', path: ROOT + path`/${sessionId}`, ...options }),
    list,
    each: (options: PageOptions = {}) => eachItem(list, options),
    /** Closes it. The history is kept. */
    close: (sessionId: string, options: RequestOptions = {}) =>
      connection.json<AgentSession>({ method: 'DELETE', path: ROOT + path`/${sessionId}`, ...options }),
    /** Resolves once the prompt is accepted and stored; `waitForRun` tells how it ended. */
    prompt: (sessionId: string, prompt: string, options: PostOptions = {}) =>
      connection.json<SubmittedRun>({
        method: 'POST',
        path: ROOT + path`/${sessionId}/runs`,
        body: { prompt },
        ...options,
      }),
    listRuns,
    eachRun: (sessionId: string, options: PageOptions = {}) =>
      eachItem((page) => listRuns(sessionId, page), options),
    /** Yields the history and then live events, across reconnects, until the conversation closes. */
    follow: (sessionId: string, options: FollowOptions = {}) =>
      followEvents<AgentStreamEvent>(connection, ROOT + path`/${sessionId}/events`, options),
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
