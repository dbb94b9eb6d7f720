/**
 * Shares the lookups of host names among workspaces. The system resolves two names at once in a process, and a name whose servers do
 * not answer takes it ten seconds or more. So hooks look up one name at a time, and leave the other place to datasources.
 */

import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import type { Resolver } from '#src/datasource/egress/egress.ts';

/** A workspace has at most one lookup for each of its requests. */
const PLACES = { width: 1, widthOfKey: 1, queueOfKey: 1000 };

/**
 * Returns a resolver in which workspaces take turns. A lookup keeps its place until the system has ended it, also when its caller waits
 * no longer.
 */
export function shareLookups(resolve: (name: string) => Promise<readonly string[]>): Resolver {
  const places = new FairSemaphore(PLACES);
  return (name, holder = '', signal) => places.pass(holder, () => resolve(name), signal);
}
