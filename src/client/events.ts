/** What the event streams carry, one envelope per event. */
import type { AgentEntry, AgentSession } from './agent-sessions.ts';
import type { NotebookSession } from './notebook-sessions.ts';
import type { Failure, RunStatus } from './runs.ts';

export interface StreamedOutput {
  readonly channel?: string;
  readonly mimetype: string;
  readonly data?: unknown;
  /** Instead of `data` when it is large. */
  readonly assetId?: string;
}

export interface RegisteredCell {
  readonly cellId: string;
  readonly name: string | null;
  readonly code: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** Counts the changes of its code. */
  readonly version: number;
}

interface SessionEvents {
  /** Everything before this was current state, everything after is live. */
  'session.replayed': Readonly<Record<string, never>>;
  'session.status': { readonly status: string; readonly reason?: string };
  /** The subscription ends; the client connects again by itself. */
  'session.resync-required': { readonly reason: string };
  'session.closed': { readonly reason: string };
  'run-status': { readonly runId: string; readonly status: RunStatus; readonly error?: Failure | null };
}

export interface NotebookEvents extends SessionEvents {
  'session.snapshot': NotebookSession;
  'cells-registered': { readonly cells: readonly RegisteredCell[]; readonly order: readonly string[] };
  'cells-deleted': { readonly cellIds: readonly string[] };
  'cell-op': {
    /** `__scratch__` for scratchpad activity. */
    readonly cellId: string;
    readonly status?: string;
    readonly stale?: boolean;
    readonly output?: StreamedOutput | null;
    /** Entries to append; an empty list clears. */
    readonly console?: readonly StreamedOutput[];
  };
  'console-output': {
    readonly cellId: string;
    readonly channel: 'stdout' | 'stderr';
    readonly text: string;
  };
  variables: {
    readonly variables: readonly {
      readonly name: string;
      readonly declaredBy: readonly string[];
      readonly usedBy: readonly string[];
    }[];
  };
  'execution-completed': {
    readonly success: boolean;
    readonly output: unknown;
    readonly stdout: string;
    readonly stderr: string;
    readonly errors: readonly unknown[];
    readonly toolCallId?: string;
  };
  'notebook.saved': { readonly updatedAt: string };
}

export interface AgentEvents extends SessionEvents {
  'session.snapshot': AgentSession;
  'agent-entry': AgentEntry;
  'text-delta': { readonly entryId: string; readonly text: string };
  'reasoning-delta': { readonly entryId: string; readonly text: string };
  'tool-call': { readonly callId: string; readonly name: string; readonly input: unknown };
  'tool-result': { readonly callId: string; readonly output: unknown; readonly status: string };
}

/** One event of one session, told apart by `type`. `runId` is there only when a run caused it. */
export type EventOf<Events, Type extends keyof Events = keyof Events> = Type extends keyof Events
  ? {
      readonly type: Type;
      readonly sessionId: string;
      readonly runId?: string;
      readonly data: Events[Type];
    }
  : never;

export type NotebookStreamEvent = EventOf<NotebookEvents>;
export type AgentStreamEvent = EventOf<AgentEvents>;
export type StreamEvent = NotebookStreamEvent | AgentStreamEvent;
