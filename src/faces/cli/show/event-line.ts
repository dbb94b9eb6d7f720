import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import type { Style } from '../style.ts';

/** Returns one event as one line: its type, and the part of its data that people look for. */
export function eventLine(event: NotebookStreamEvent, style: Style): string {
  return `${style.bold(event.type)}  ${detailOf(event)}`.trimEnd();
}

function detailOf(event: NotebookStreamEvent): string {
  switch (event.type) {
    case 'session.snapshot':
      return `${event.sessionId} ${event.data.status}, ${event.data.cells.length} cells`;
    case 'session.status':
      return [event.data.status, event.data.reason].filter(Boolean).join(', ');
    case 'session.closed': {
      const { reason, closedBy } = event.data;
      return closedBy === undefined ? reason : `${reason} by ${closedBy}`;
    }
    case 'session.resync-required':
      return event.data.reason;
    case 'run-status': {
      const { runId, status, stale, error, createdBy } = event.data;
      const by = createdBy === undefined ? '' : ` by ${createdBy}`;
      const lost = stale === true ? ', lost when the server stopped' : '';
      return `${runId}${by} ${status}${lost}${error == null ? '' : `: ${error.message}`}`;
    }
    case 'session.startup':
      return event.data.text;
    case 'cells-registered':
      return event.data.cells.map(({ cellId }) => cellId).join(' ');
    case 'cells-deleted':
      return event.data.cellIds.join(' ');
    case 'cell-op': {
      const { cellId, status, stale, output, console } = event.data;
      const parts = [
        status,
        stale === true ? 'stale' : undefined,
        output?.mimetype,
        ...(console ?? []).map(({ channel }) => channel),
      ];
      return [cellId, ...parts].filter(Boolean).join(' ');
    }
    case 'console-output':
      return `${event.data.cellId} ${event.data.channel} ${JSON.stringify(event.data.text)}`;
    case 'variables':
      return event.data.variables.map(({ name }) => name).join(' ');
    case 'execution-completed':
      return event.data.success ? 'success' : 'failed';
    case 'notebook.saved':
      return event.data.updatedAt;
    case 'session.replayed':
      return '';
  }
}
