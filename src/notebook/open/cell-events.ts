/** Builds the events about cells. */

import type { CellOutput } from '#src/confined/processes/kernel/messages.ts';
import type { Envelope, EventData, EventType, RegisteredCell } from '#src/contract/wire/events.ts';
import { piecesOfText } from '#src/runtime/sessions/event-size.ts';
import { configOf } from '../saved/document.ts';
import type { VariableGraph } from './dependencies.ts';
import { streamedOps } from './streamed-outputs.ts';
import { type NotebookView, shownStatus, type ViewCell } from './view.ts';

/** An event without the id of its session, which is added later. */
export type NotebookEvent = {
  [T in EventType]: { readonly type: T; readonly data: EventData<T> };
}[EventType];

/** Returns the state of a cell without its printed text: its console is cleared. */
function stateEvents(cell: ViewCell): NotebookEvent[] {
  const state = { cellId: cell.id, status: shownStatus(cell), stale: cell.stale };
  return opEvents(state, cell.output ?? undefined, cell.console.isEmpty ? undefined : []);
}

/** Returns a cell operation as events. */
export function opEvents(...op: Parameters<typeof streamedOps>): NotebookEvent[] {
  return streamedOps(...op).map((data) => ({ type: 'cell-op', data }));
}

/** Returns printed text as events. */
export function textEvents(cellId: string, channel: 'stdout' | 'stderr', text: string): NotebookEvent[] {
  return piecesOfText(text).map((piece) => ({
    type: 'console-output',
    data: { cellId, channel, text: piece },
  }));
}

/**
 * Returns the printed text of a cell as events: one event for each text, and cell operations for
 * other entries.
 */
function consoleEvents(cellId: string, entries: readonly CellOutput[]): NotebookEvent[] {
  return entries.flatMap((entry) =>
    isConsoleText(entry)
      ? textEvents(cellId, entry.channel, entry.data)
      : opEvents({ cellId }, undefined, [entry]),
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

/** The most characters of code in one event. A cell with more code has an event to itself. */
const MAX_CODE_CHARS = 256 * 1024;

/** Returns events with new or changed cells, and the order of all cells. */
export function registeredEvents(cells: readonly ViewCell[], order: readonly string[]): NotebookEvent[] {
  let list: RegisteredCell[] = [];
  let room = MAX_CODE_CHARS;
  const events: NotebookEvent[] = [{ type: 'cells-registered', data: { cells: list, order } }];
  for (const { id, code, options, version } of cells) {
    if (code.length > room && list.length > 0) {
      list = [];
      room = MAX_CODE_CHARS;
      events.push({ type: 'cells-registered', data: { cells: list, order } });
    }
    room -= code.length;
    const { name, ...config } = configOf(options);
    list.push({ cellId: id, name, code, config, version });
  }
  return events;
}

/**
 * Returns the state of a notebook as events, from which a subscriber builds it. They replace a subscriber's earlier
 * state: consoles are cleared before their text is sent.
 */
export function replayOf(view: NotebookView, sessionId: string): Envelope[] {
  const { cells, order, variables } = view;
  const events: NotebookEvent[] = [
    ...registeredEvents(cells, order),
    ...cells.flatMap((cell) => [...stateEvents(cell), ...consoleEvents(cell.id, cell.console.entries())]),
    variablesEvent(variables),
  ];
  return events.map((event) => ({ ...event, sessionId }));
}

export function variablesEvent(variables: VariableGraph): NotebookEvent {
  return { type: 'variables', data: { variables } };
}
