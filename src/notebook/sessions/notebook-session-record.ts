/** A notebook session in the form that the API returns, and the events that rebuild it for a new subscriber. */

import {
  type notebookSessionMachine,
  type SessionContext,
  sessionStatus,
} from '#machines/notebook-session.ts';
import { shownMetadata } from '#src/base/metadata-filter.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { NotebookSession, SessionStatus, Startup } from '#src/contract/wire/session.ts';
import type { Peek } from '#src/runtime/actors/actor-definition.ts';
import { shownStatus, type ViewCell } from '../open/view.ts';
import { configOf } from '../saved/document.ts';

/** Statuses by snapshot. Snapshots never change, and computing the status is the slowest part of reading a session. */
const statuses = new WeakMap<object, SessionStatus>();

/** Returns the time at which a session ends because of its `ttlS`; null without `ttlS`. */
function expiryOf({ openedAt, lifetime }: Pick<SessionContext, 'openedAt' | 'lifetime'>): string | null {
  const { ttlS } = lifetime;
  return ttlS === null || openedAt === null ? null : timestamp(Date.parse(openedAt) + ttlS * 1000);
}

export type SessionPeek = Peek<typeof notebookSessionMachine>;

export function notebookStatusOf({ snapshot }: SessionPeek): SessionStatus {
  const known = statuses.get(snapshot);
  if (known !== undefined) return known;
  const status = sessionStatus(snapshot);
  statuses.set(snapshot, status);
  return status;
}

/** The part of a session's record that shows its notebook. */
interface Shown {
  readonly view: { readonly cells: readonly ViewCell[] };
  readonly startup: Startup | null;
  readonly notes: readonly string[];
}

/** The parts from which a record is made. */
export interface RecordParts {
  readonly sessionId: string;
  readonly peek: SessionPeek;
  /** `startup` and `notes` are replaced when they change, while the members of cells change in place. */
  readonly shown: Shown;
  readonly kernelFacts: Readonly<Record<string, unknown>>;
  readonly url: string;
}

export function sessionRecord({ sessionId, peek, shown, kernelFacts, url }: RecordParts): NotebookSession {
  const { view, startup, notes } = shown;
  const { context } = peek.snapshot;
  // A lost session is shown like a sleeping session, because its next use starts a kernel.
  const wasLost = peek.isLost;
  const { ttlS, idleTimeoutS } = context.lifetime;
  const status = wasLost ? 'ready' : notebookStatusOf(peek);
  const hasKernel = !wasLost && (status === 'ready' || status === 'busy') && peek.snapshot.hasTag('resident');
  return {
    sessionId,
    notebookId: sessionId,
    environmentId: context.environmentId,
    mode: context.mode,
    arguments: context.arguments,
    ...shownMetadata(context.metadata),
    ttlS,
    idleTimeoutS,
    expiresAt: status === 'closed' ? null : expiryOf(context),
    status,
    startup,
    phases: context.phases,
    currentRunId: context.work?.kind === 'run' && !wasLost ? context.work.id : null,
    cells: view.cells.map((cell) => ({
      cellId: cell.id,
      name: configOf(cell.options).name,
      status: shownStatus(cell),
      stale: cell.stale,
      version: cell.version,
    })),
    kernel: hasKernel ? { ...kernelFacts, notes } : null,
    error: context.failure,
    ...(status === 'closed' && context.closedBy != null ? { closedBy: context.closedBy } : {}),
    createdAt: context.openedAt ?? peek.createdAt,
    updatedAt: peek.updatedAt,
    url,
  };
}
