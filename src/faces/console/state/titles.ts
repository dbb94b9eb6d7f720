/** The titles of open notebooks, which tell people more than ids. All views share them. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useClient } from './data.ts';
import { place } from './route.ts';
import { onSignOut } from './sign-in.ts';
import { isVisible } from './visible.ts';

const MAX_TITLES = 100;
/**
 * The pause between two requests. Without this pause, a session that is missing from every answer, because it is beyond the first
 * `MAX_TITLES`, would be requested again and again.
 */
const MIN_GAP_MS = 10_000;
/** Titles change, so a view that appears later loads them again. */
const MAX_AGE_MS = 60_000;

/** Titles by workspace, then by session. */
const titles = signal<Readonly<Record<string, ReadonlyMap<string, string>>>>({});
/** The time of the last request, by workspace. */
const askedAtMs = new Map<string, number>();

onSignOut(() => {
  titles.value = {};
  askedAtMs.clear();
});

/** Returns whether actors of a kind may have a title. */
export function isSession(kind: string): boolean {
  return kind.endsWith('-session');
}

/** Returns a function that returns the title of a session, or its id if the title is not known yet. Unknown titles are requested. */
export function useTitles(sessionIds: readonly string[]): (sessionId: string) => string {
  const client = useClient();
  const { workspaceId } = place.value;
  const known = titles.value[workspaceId];
  const isSeen = isVisible.value;
  const isComplete = sessionIds.every((sessionId) => known?.has(sessionId));
  useEffect(() => {
    if (sessionIds.length === 0 || !isSeen) return;
    const ask = async () => {
      askedAtMs.set(workspaceId, performance.now());
      const { items } = await client.notebookSessions.list({
        status: 'open',
        order: 'desc',
        limit: MAX_TITLES,
      });
      const all = new Map(titles.peek()[workspaceId]);
      for (const { sessionId, title } of items) if (title !== null) all.set(sessionId, title);
      titles.value = { ...titles.peek(), [workspaceId]: all };
    };
    const askedMs = askedAtMs.get(workspaceId) ?? Number.NEGATIVE_INFINITY;
    const waitMs = askedMs + (isComplete ? MAX_AGE_MS : MIN_GAP_MS) - performance.now();
    // Without titles the views show ids.
    const timer = setTimeout(() => ask().catch(() => {}), Math.max(0, waitMs));
    return () => clearTimeout(timer);
  }, [isComplete, isSeen, workspaceId, sessionIds.join()]);
  return (sessionId) => known?.get(sessionId) ?? sessionId;
}
