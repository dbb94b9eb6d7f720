import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';
import { followEvents } from './event-stream.ts';
import type { ExecutionRequest } from './executions.ts';

export interface Failure {
  /** Stable, snake_case. */
  readonly code: string;
  readonly message: string;
  /** The cells at fault. */
  readonly cells?: readonly string[];
}

export type RunStatus = 'running' | 'completed' | 'failed' | 'cancelled';

/** A value as it was shown: in place, or as an asset of the run when it is large. */
export type ShownOutput =
  | { readonly mimetype: string; readonly data: unknown }
  | { readonly mimetype: string; readonly assetId: string };

export interface CellResult {
  readonly type: 'cell-result';
  readonly cellId: string;
  readonly status: 'success' | 'error' | 'stopped' | 'cancelled' | 'interrupted' | 'disabled';
  readonly outputs: readonly ShownOutput[];
  readonly console: readonly {
    readonly channel: string;
    readonly mimetype: string;
    readonly data: unknown;
  }[];
  readonly durationMs: number | null;
}

export type OutputPart =
  | CellResult
  | { readonly type: 'assistant-message'; readonly text: string }
  | {
      readonly type: 'tool-call';
      readonly name: string;
      readonly input: unknown;
      readonly output: unknown;
      readonly status: string;
    }
  | { readonly type: 'final-answer'; readonly markdown: string }
  | { readonly type: 'warning'; readonly code: string; readonly message: string }
  | {
      readonly type: 'asset';
      readonly assetId: string;
      readonly mimetype: string;
      readonly bytes: number;
      readonly sha256: string;
    };

interface RunRecord<Kind extends 'notebook' | 'agent', Input> {
  readonly id: string;
  readonly kind: Kind;
  readonly sessionId: string;
  readonly status: RunStatus;
  /** True when the server died while it ran: only a cancel ends it. */
  readonly stale?: boolean;
  /** The request as it was accepted. */
  readonly input: Input;
  readonly output: {
    /** False for `no-store`; `parts` is then empty. */
    readonly stored: boolean;
    readonly parts: readonly OutputPart[];
    /** Of a prompt: who answered it, in how many steps, with how many tokens. */
    readonly model?: string;
    readonly steps?: number;
    readonly usage?: {
      readonly inputTokens: number;
      readonly cachedInputTokens: number;
      readonly outputTokens: number;
      readonly reasoningTokens: number;
    };
  } | null;
  readonly error: Failure | null;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
}

export type NotebookRun = RunRecord<'notebook', ExecutionRequest>;
export type AgentRun = RunRecord<'agent', { readonly prompt: string }>;
export type Run = NotebookRun | AgentRun;

/** What is answered to an accepted execution or prompt. */
export interface SubmittedRun {
  readonly runId: string;
  readonly sessionId: string;
  readonly status: 'running';
}

/** Runs of every kind. */
export function runs(connection: Connection) {
  const get = (runId: string, options: RequestOptions = {}) =>
    connection.json<Run>({ method: 'GET', path: path`/api/v3/runs/${runId}`, ...options });
  return {
    get,
    /** Accepted means that the run becomes terminal, not that it is. */
    cancel: (runId: string, options: PostOptions = {}) =>
      connection.json<{ readonly runId: string; readonly status: 'cancelling' }>({
        method: 'POST',
        path: path`/api/v3/runs/${runId}/cancel`,
        ...options,
      }),
    asset: (runId: string, assetId: string, options: RequestOptions = {}) =>
      connection.bytes({ method: 'GET', path: path`/api/v3/runs/${runId}/assets/${assetId}`, ...options }),
    /**
     * Resolves with the record once the run is terminal, or `stale`, which nothing but a cancel changes. Told by the
     * session's events: it subscribes first and reads then, so no end is missed.
     */
    async wait(runId: string, options: RequestOptions = {}): Promise<Run> {
      const first = await get(runId, options);
      if (isOver(first)) return first;
      const kind = first.kind === 'notebook' ? 'notebook-sessions' : 'agent-sessions';
      const events = `/api/v3/${kind}/${encodeURIComponent(first.sessionId)}/events`;
      for await (const event of followEvents(connection, events, options)) {
        const mayBeOver =
          event.type === 'session.replayed' ||
          (event.type === 'run-status' && event.data.runId === runId && event.data.status !== 'running');
        if (!mayBeOver) continue;
        const run = await get(runId, options);
        if (isOver(run)) return run;
      }
      return get(runId, options);
    },
  };
}

function isOver(run: Run): boolean {
  return run.status !== 'running' || run.stale === true;
}
