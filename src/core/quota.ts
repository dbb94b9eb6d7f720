import { AppError } from './errors.ts';
import type { WorkspaceId } from './ids.ts';

const RETRY_AFTER_S = '5';

/** Throws `quota_exceeded` when the workspace already has `limit` of these. A limit of 0 means no limit. */
export function refuseOverQuota(what: string, limit: number, count: () => number): void {
  if (limit !== 0 && count() >= limit) throw overQuota(what, limit);
}

/** Returns the error `quota_exceeded` for a workspace that has `limit` of these. */
export function overQuota(what: string, limit: number): AppError {
  return new AppError('quota_exceeded', `This workspace may have at most ${limit} ${what}.`, {
    headers: { 'retry-after': RETRY_AFTER_S },
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
