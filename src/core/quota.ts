import { AppError } from './errors.ts';
import type { WorkspaceId } from './ids.ts';

const RETRY_AFTER_S = '5';

/** Throws `quota_exceeded` when a workspace that has `count()` of `what` may not have another; a limit of 0 is none. */
export function refuseOverQuota(what: string, limit: number, count: () => number): void {
  if (limit === 0 || count() < limit) return;
  throw new AppError('quota_exceeded', `This workspace may have ${limit} ${what} at once.`, {
    headers: { 'retry-after': RETRY_AFTER_S },
  });
}

/** How many of these belong to a workspace. */
export function countOf(
  items: Iterable<{ readonly workspaceId: WorkspaceId }>,
  workspaceId: WorkspaceId,
): number {
  let count = 0;
  for (const item of items) if (item.workspaceId === workspaceId) count++;
  return count;
}
