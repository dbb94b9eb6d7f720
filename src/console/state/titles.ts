/** The titles of open notebooks, which say more than ids. */
import { useData } from './data.ts';

const EVERY_MS = 10_000;
const MAX_TITLES = 100;

/** Returns the title of a session, or its id until the title is known. */
export function useTitles(): (sessionId: string) => string {
  const sessions = useData(
    (client, signal) =>
      client.notebookSessions.list({ status: 'open', order: 'desc', limit: MAX_TITLES, signal }),
    [],
    { everyMs: EVERY_MS },
  );
  const titles = new Map(sessions.value?.items.map(({ sessionId, title }) => [sessionId, title]));
  return (sessionId) => titles.get(sessionId) ?? sessionId;
}
