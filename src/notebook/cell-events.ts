/** Builds the events about cells. */

import type { CellOutput } from '#src/kernel/messages.ts';
import type { EventData, EventType } from '#src/wire/events.ts';
import { configOf } from './document.ts';
import { shownStatus, type VariableGraph, type ViewCell } from './view.ts';

/** An event that does not know its session yet. */
export type NotebookEvent = {
  [T in EventType]: { readonly type: T; readonly data: EventData<T> };
}[EventType];

/** Which members of a `cell-op` to give. A scratchpad has no cell: its activity is given as it came. */
export interface CellEventParts {
  readonly status?: boolean;
  readonly stale?: boolean;
  readonly output?: CellOutput | null;
  readonly console?: readonly CellOutput[];
  /** The console is given even when it is empty: it was cleared. */
  readonly clearsConsole?: boolean;
}

export function cellEvent(
  cell: ViewCell | { readonly id: string; readonly activity: string | undefined },
  parts: CellEventParts,
): NotebookEvent {
  const status = 'code' in cell ? shownStatus(cell) : cell.activity;
  return {
    type: 'cell-op',
    data: {
      cellId: cell.id,
      ...(parts.status === true && status !== undefined ? { status } : {}),
      ...(parts.stale === true && 'code' in cell ? { stale: cell.stale } : {}),
      ...(parts.output == null ? {} : { output: shown(parts.output) }),
      ...((parts.console?.length ?? 0) > 0 || parts.clearsConsole === true
        ? { console: (parts.console ?? []).map(shown) }
        : {}),
    },
  };
}

function shown({ channel, mimetype, data }: CellOutput): {
  channel: string;
  mimetype: string;
  data: unknown;
} {
  return { channel, mimetype, data };
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

export function variablesEvent(variables: VariableGraph): NotebookEvent {
  return { type: 'variables', data: { variables } };
}
