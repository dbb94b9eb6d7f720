/**
 * Whether a request was made for the present state of an open notebook. A request for an earlier state could overwrite changes
 * that its caller has not read.
 */

import { AppError } from '#src/base/errors/errors.ts';
import { isSameInstant } from '#src/base/time/clock.ts';
import type { NotebookView } from './view.ts';

/** The state that the caller of a request has read. Members that are missing, or null, are not compared. */
export interface ReadState {
  readonly expectedUpdatedAt?: string | null | undefined;
  /** Cells that the request names. */
  readonly cells: Iterable<{ readonly cellId: string; readonly version?: number | null | undefined }>;
}

const MAX_NAMED_CELLS = 5;

/**
 * Throws `stale_update`, with the present `updatedAt` and the present versions of stale cells, unless the caller has read the
 * present state.
 */
export function requireCurrent(
  {
    view,
    document: { updatedAt },
  }: { readonly view: NotebookView; readonly document: { readonly updatedAt: string } },
  { expectedUpdatedAt, cells: named }: ReadState,
): void {
  const stale = new Map<string, number>();
  for (const { cellId, version } of named) {
    const present = view.get(cellId)?.version;
    if (version != null && present !== undefined && present !== version) stale.set(cellId, present);
  }
  const isCurrent = expectedUpdatedAt == null || isSameInstant(updatedAt, expectedUpdatedAt);
  if (isCurrent && stale.size === 0) return;
  const ids = [...stale.keys()];
  const names =
    ids.slice(0, MAX_NAMED_CELLS).join(', ') + (ids.length > MAX_NAMED_CELLS ? ' and others' : '');
  const fact = isCurrent ? `Cells have changed: ${names}` : `The notebook was last updated at ${updatedAt}`;
  const cells = [...stale].map(([cellId, version]) => ({ cellId, version }));
  throw new AppError('stale_update', `${fact}. Read the notebook again first.`, {
    members: { updatedAt, cells },
  });
}
