/** The titles of open notebooks, which say more than ids. All views share them. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useClient } from './data.ts';
import { place } from './route.ts';

const MAX_TITLES = 100;
/** A session that is in no list, because there are too many, is not asked for again before that. */
const MIN_GAP_MS = 10_000;

/** By workspace, then by session. */
const titles = signal<Readonly<Record<string, ReadonlyMap<string, string>>>>({});
let askedAtMs = Number.NEGATIVE_INFINITY;

/** Whether actors of a kind may have a title. */
export function isSession(kind: string): boolean {
  return kind.endsWith('-session');
}

/** Returns the titles of sessions, as far as they are known; of others their ids. Unknown ones are asked for. */
export function useTitles(sessionIds: readonly string[]): (sessionId: string) => string {
  const client = useClient();
  const { workspaceId } = place.value;
  const known = titles.value[workspaceId];
  const isComplete = sessionIds.every((sessionId) => known?.has(sessionId));
  useEffect(() => {
    if (isComplete || performance.now() < askedAtMs + MIN_GAP_MS) return;
    askedAtMs = performance.now();
    client.notebookSessions.list({ status: 'open', order: 'desc', limit: MAX_TITLES }).then(
      ({ items }) => {
        const found = items.flatMap(({ sessionId, title }) =>
          title === null ? [] : [[sessionId, title] as const],
        );
        titles.value = { ...titles.peek(), [workspaceId]: new Map([...(known ?? []), ...found]) };
      },
      // Ids are shown as well; the next view asks again.
      () => {},
    );
  }, [isComplete, workspaceId, sessionIds.join()]);
  return (sessionId) => known?.get(sessionId) ?? sessionId;
}
