import { durationText } from '#src/base/text/duration-text.ts';
import type { NotebookSession } from '#src/contract/wire/session.ts';

type Closed = Pick<NotebookSession, 'closedBy' | 'ttlS' | 'idleTimeoutS' | 'createdAt' | 'updatedAt'>;

/** Returns why a closed session has ended, as a sentence; empty when that is not known. */
export function whyClosed({ closedBy, ttlS, idleTimeoutS, createdAt, updatedAt }: Closed): string {
  if (closedBy !== undefined) return `It was closed by ${closedBy}.`;
  const lifeMs = Date.parse(updatedAt) - Date.parse(createdAt);
  if (ttlS !== null && lifeMs >= ttlS * 1000)
    return `It was closed after the ${durationText(ttlS)} for which it was opened.`;
  return idleTimeoutS === null ? '' : `It was closed after ${durationText(idleTimeoutS)} without use.`;
}
