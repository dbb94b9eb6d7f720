import type { RegisteredCell, StreamEvent } from '#src/contract/wire/events.ts';
import type { Output } from '#src/contract/wire/output.ts';

interface CellState {
  status: string;
  output: Output | null;
  console: Output[];
}

/** Builds the state of some cells, or of all, from the events of their session. It keeps nothing of other cells. */
export class CellStates {
  /** The ids of the cells to keep; undefined for all. */
  readonly #asked: ReadonlySet<string> | undefined;
  readonly #cells = new Map<string, RegisteredCell>();
  readonly #states = new Map<string, CellState>();
  #order: readonly string[] = [];

  constructor(cellIds: readonly string[] | undefined) {
    this.#asked = cellIds && new Set(cellIds);
  }

  take(event: StreamEvent): void {
    if (event.type === 'cells-registered') {
      for (const cell of event.data.cells) if (this.#keeps(cell.cellId)) this.#cells.set(cell.cellId, cell);
      this.#order = event.data.order;
    } else if (event.type === 'cell-op' && this.#keeps(event.data.cellId)) {
      const { cellId, output, console, status } = event.data;
      const state = this.#stateOf(cellId);
      if (status !== undefined) state.status = status;
      if (output !== undefined) state.output = output;
      if (console?.length === 0) state.console = [];
      for (const entry of console ?? []) state.console.push(entry);
    } else if (event.type === 'console-output' && this.#keeps(event.data.cellId)) {
      const { cellId, channel, text } = event.data;
      this.#stateOf(cellId).console.push({ channel, mimetype: 'text/plain', data: text });
    }
  }

  /** Yields the cells in the notebook's order. */
  *cells(): Generator<CellState & { readonly cell: RegisteredCell }> {
    for (const cellId of this.#order) {
      const cell = this.#cells.get(cellId);
      if (cell !== undefined) yield { cell, ...this.#stateOf(cellId) };
    }
  }

  #keeps(cellId: string): boolean {
    return this.#asked === undefined || this.#asked.has(cellId);
  }

  #stateOf(cellId: string): CellState {
    const known = this.#states.get(cellId);
    if (known !== undefined) return known;
    const state: CellState = { status: 'stale', output: null, console: [] };
    this.#states.set(cellId, state);
    return state;
  }
}
