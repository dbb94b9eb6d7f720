/** Builds the events about cells. */

import type { CellOutput } from '#src/confined/kernel/messages.ts';
import type { Envelope, EventData, EventType } from '#src/wire/events.ts';
import type { VariableGraph } from './dependencies.ts';
import { configOf } from './document.ts';
import { type NotebookView, shownStatus, type ViewCell } from './view.ts';

/** An event that does not know its session yet. */
export type NotebookEvent = {
  [T in EventType]: { readonly type: T; readonly data: EventData<T> };
}[EventType];

/** Returns the state of a cell without its printed text: its console is cleared. */
function stateEvent(cell: ViewCell): NotebookEvent {
  return {
    type: 'cell-op',
    data: {
      cellId: cell.id,
      status: shownStatus(cell),
      stale: cell.stale,
      ...(cell.output === null ? {} : { output: shown(cell.output) }),
      ...(cell.console.isEmpty ? {} : { console: [] }),
    },
  };
}

/** Returns the printed text of a cell as events: one for each text, and cell operations for the rest. */
function consoleEvents(cellId: string, entries: readonly CellOutput[]): NotebookEvent[] {
  return entries.map((entry) =>
    isConsoleText(entry)
      ? { type: 'console-output', data: { cellId, channel: entry.channel, text: entry.data } }
      : { type: 'cell-op', data: { cellId, console: [shown(entry)] } },
  );
}

/** Returns whether an entry of a console is printed text. */
export function isConsoleText(
  entry: CellOutput,
): entry is CellOutput & { channel: 'stdout' | 'stderr'; data: string } {
  return (
    (entry.channel === 'stdout' || entry.channel === 'stderr') &&
    entry.mimetype === 'text/plain' &&
    typeof entry.data === 'string'
  );
}

/** Returns an output as events give it. */
export function shown({ timestamp: _, ...output }: CellOutput): EventData<'cell-op'>['output'] & object {
  return output;
}

/** New or changed cells, and the order of all. */
export function registeredEvent(cells: readonly ViewCell[], all: readonly ViewCell[]): NotebookEvent {
  return {
    type: 'cells-registered',
    data: {
      cells: cells.map(({ id, code, options, version }) => {
        const { name, ...config } = configOf(options);
        return { cellId: id, name, code, config, version };
      }),
      order: all.map(({ id }) => id),
    },
  };
}

/**
 * Returns the state of a notebook as events, from which a subscriber builds it. They replace a subscriber's earlier
 * state: consoles are cleared before their text is sent.
 */
export function replayOf(view: NotebookView, sessionId: string): Envelope[] {
  const { cells, variables } = view;
  const events: NotebookEvent[] = [
    registeredEvent(cells, cells),
    ...cells.flatMap((cell) => [stateEvent(cell), ...consoleEvents(cell.id, cell.console.entries())]),
    variablesEvent(variables),
  ];
  return events.map((event) => ({ ...event, sessionId }));
}

export function variablesEvent(variables: VariableGraph): NotebookEvent {
  return { type: 'variables', data: { variables } };
}
