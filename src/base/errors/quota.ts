import type { WorkspaceId } from '../ids.ts';
import { AppError } from './errors.ts';

const RETRY_AFTER_S = '5';

/** The subject of the limit: the whole workspace, or each of its members. */
export type LimitHolder = 'workspace' | 'user';

/** A limit of a workspace or of its members, as shown to the client. */
export interface NamedLimit {
  /** The name of the limit for workspaces; absent for a limit that nobody can change. */
  readonly name?: string;
  /** The name of the limited resource, in words. */
  readonly what: string;
  /** The workspace when absent. */
  readonly of?: LimitHolder;
}

/** Throws `quota_exceeded` when there are already `max` items; with 0 there is no limit. */
export function refuseOverQuota(limit: NamedLimit, max: number, count: () => number): void {
  if (max !== 0 && count() >= max) throw overQuota(limit, max);
}

/**
 * Returns the error `quota_exceeded`, which names the limit and the workspace or member that has
 * reached it.
 */
export function overQuota({ name, what, of = 'workspace' }: NamedLimit, max: number): AppError {
  const detail =
    of === 'workspace'
      ? `This workspace may have at most ${max} ${what}.`
      : `Each member of this workspace may have at most ${max} ${what}, and you have reached this limit.`;
  return new AppError('quota_exceeded', detail, {
    headers: { 'retry-after': RETRY_AFTER_S },
    ...(name === undefined ? {} : { members: { limit: { name, of, max } } }),
  });
}

/** Returns how many of these items belong to the workspace. */
export function countOf(
  items: Iterable<{ readonly workspaceId: WorkspaceId }>,
  workspaceId: WorkspaceId,
): number {
  let count = 0;
  for (const item of items) if (item.workspaceId === workspaceId) count++;
  return count;
}
