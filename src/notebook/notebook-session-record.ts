/** A notebook session as it is served, and the events that rebuild it for a new subscriber. */

import {
  type notebookSessionMachine,
  type SessionMode,
  type SessionStatus,
  sessionStatus,
} from '#machines/notebook-session.ts';
import type { Peek } from '#src/actors/actor-definition.ts';
import type { Failure } from '#src/core/errors.ts';
import type { Startup } from '#src/wire/session.ts';
import { configOf } from './document.ts';
import { type ShownStatus, shownStatus, type ViewCell } from './view.ts';

export interface NotebookSessionRecord {
  readonly sessionId: string;
  readonly notebookId: string;
  readonly environmentId: string | null;
  readonly mode: SessionMode;
  readonly arguments: readonly string[];
  readonly status: SessionStatus;
  /** What the start of the kernel waits for; null when there is nothing to say. */
  readonly startup: Startup | null;
  /** Milliseconds of each step of the last kernel start. */
  readonly phases: Readonly<Record<string, number>>;
  readonly currentRunId: string | null;
  readonly cells: readonly { cellId: string; name: string; status: ShownStatus; stale: boolean }[];
  /** Facts about the kernel, null while there is none. */
  readonly kernel: Readonly<Record<string, unknown>> | null;
  readonly error: Failure | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** Snapshots never change, and computing a status is the slowest part of reading one. */
const statuses = new WeakMap<object, SessionStatus>();

type SessionPeek = Peek<typeof notebookSessionMachine>;

export function statusOf({ snapshot }: SessionPeek): SessionStatus {
  const known = statuses.get(snapshot);
  if (known !== undefined) return known;
  const status = sessionStatus(snapshot);
  statuses.set(snapshot, status);
  return status;
}

/** What a session shows of its notebook. */
interface Shown {
  readonly view: { readonly cells: readonly ViewCell[] };
  readonly startup: Startup | null;
}

export function sessionRecord(
  sessionId: string,
  peek: SessionPeek,
  { view: { cells }, startup }: Shown,
  kernelFacts: Readonly<Record<string, unknown>>,
): NotebookSessionRecord {
  const { context } = peek.snapshot;
  // As with a session that sleeps, the next use of one that was lost starts a kernel.
  const wasLost = peek.isLost;
  const status = wasLost ? 'ready' : statusOf(peek);
  const hasKernel = !wasLost && (status === 'ready' || status === 'busy') && peek.snapshot.hasTag('resident');
  return {
    sessionId,
    notebookId: sessionId,
    environmentId: context.environmentId,
    mode: context.mode,
    arguments: context.arguments ?? [],
    status,
    startup,
    phases: context.phases,
    currentRunId: context.work?.kind === 'run' && !wasLost ? context.work.id : null,
    cells: cells.map((cell) => ({
      cellId: cell.id,
      name: configOf(cell.options).name,
      status: shownStatus(cell),
      stale: cell.stale,
    })),
    kernel: hasKernel ? kernelFacts : null,
    error: context.failure,
    createdAt: context.openedAt ?? peek.createdAt,
    updatedAt: peek.updatedAt,
  };
}
