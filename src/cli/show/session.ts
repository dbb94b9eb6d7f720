import type { NotebookSession } from '#src/wire/session.ts';
import { styleOf } from '../style.ts';
import { table } from '../table.ts';
import { durationText } from './duration.ts';
import { factLines } from './notebook.ts';

/** Returns a session as text: its properties, and the state of its cells. */
export function sessionText(session: NotebookSession, color: boolean): string {
  const { sessionId, environmentId, mode, status, phases, currentRunId, error, cells, createdAt } = session;
  const facts = factLines(
    [
      ['session', sessionId],
      ['environment', environmentId ?? '-'],
      ['mode', mode],
      ['status', status],
      ...(currentRunId === null ? [] : [['run', currentRunId]]),
      ...(error === null ? [] : [['error', `${error.message} (${error.code})`]]),
      ...(phases.totalMs === undefined ? [] : [['started in', durationText(phases.totalMs)]]),
      ['opened', createdAt],
    ],
    styleOf(color),
  );
  const rows = cells.map((cell) => [cell.cellId, cell.name || '-', cell.status, cell.stale ? 'yes' : 'no']);
  return rows.length === 0 ? facts : `${facts}\n${table(['cell', 'name', 'status', 'stale'], rows, color)}`;
}
