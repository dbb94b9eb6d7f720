import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';
import { type FollowOptions, followEvents } from './event-stream.ts';
import type { AgentStreamEvent } from './events.ts';
import { eachItem, type Page, type PageOptions } from './paging.ts';
import type { AgentRun, SubmittedRun } from './runs.ts';

export type AgentEntryPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | {
      readonly type: 'tool-call';
      readonly callId: string;
      readonly name: string;
      /** An object; text when the model did not write JSON. */
      readonly input: unknown;
    }
  | {
      readonly type: 'tool-result';
      readonly callId: string;
      readonly name: string;
      readonly status: 'completed' | 'failed' | 'cancelled';
      readonly output: string;
      /** Assets of the run. */
      readonly images: readonly { readonly mimetype: string; readonly assetId: string }[];
    };

export interface AgentEntry {
  readonly id: string;
  readonly role: 'user' | 'assistant' | 'tool';
  readonly content: readonly AgentEntryPart[];
  /** The prompt it belongs to. */
  readonly runId: string | null;
  readonly createdAt: string;
}

export interface AgentSessionSummary {
  readonly sessionId: string;
  readonly environmentId: string | null;
  readonly notebookSessionId: string | null;
  readonly status: 'ready' | 'busy' | 'closed';
  /** In effect: the default where nothing was asked for. */
  readonly config: { readonly model: string | null; readonly instructions: string | null };
  readonly context: { readonly datasourceSlugs: readonly string[] };
  readonly currentRunId: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface AgentSession extends AgentSessionSummary {
  readonly entries: readonly AgentEntry[];
}

export interface OpenAgentSession {
  readonly environmentId: string;
  /** A ready notebook session of the same environment, for the agent to work in. */
  readonly notebookSessionId?: string;
  /** A saved conversation to open again. */
  readonly id?: string;
  /** Omitted members stay what they are; null is the default. */
  readonly config?: { readonly model?: string | null; readonly instructions?: string | null };
  readonly context?: { readonly datasourceSlugs?: readonly string[] };
}

export interface AgentSessionGrant {
  readonly userId: string;
  readonly grantedBy: string;
  readonly createdAt: string;
}

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
    /** Its history stays. */
    close: (sessionId: string, options: RequestOptions = {}) =>
      connection.json<AgentSession>({ method: 'DELETE', path: ROOT + path`/${sessionId}`, ...options }),
    /** Answers once the prompt is accepted and on disk; `waitForRun` tells how it ended. */
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
    /** Its events: the history, then what happens, across reconnects, until it closes. */
    follow: (sessionId: string, options: FollowOptions = {}) =>
      followEvents<AgentStreamEvent>(connection, ROOT + path`/${sessionId}/events`, options),
    grants: (sessionId: string, options: RequestOptions = {}) =>
      connection.json<{ readonly items: readonly AgentSessionGrant[] }>({
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
