/**
 * What is known of an open notebook's cells: the document, and what the kernel has said of each cell. Pure state: it
 * folds the kernel's messages and never asks. It outlives kernels; `kernelLost` says that one is gone.
 */
import type {
  BridgeDone,
  CellError,
  CellOp,
  CellOutput,
  CellStatus,
  Variables,
} from '#src/kernel/messages.ts';
import { ConsoleTail } from './console-tail.ts';
import { configOf, type SavedCell } from './document.ts';

export type ShownStatus = 'idle' | 'queued' | 'running' | 'stale' | 'disabled' | 'error';

export interface ViewCell {
  readonly id: string;
  code: string;
  options: Readonly<Record<string, unknown>>;
  /** Counts the changes of the code: code mode refuses edits of a version that was not read. */
  version: number;
  activity: 'idle' | 'queued' | 'running' | 'disabled-transitively';
  stale: boolean;
  output: CellOutput | null;
  console: ConsoleTail;
  /** How its last run ended; null while it has not run in this kernel. */
  ended: CellStatus;
  structural: readonly CellError[];
}

export type VariableGraph = Variables['variables'];

/** A kernel's process is not trusted: what it can make this server hold for one notebook has bounds. In characters. */
const MAX_CODE_CHARS = 16 * 2 ** 20;
const MAX_OUTPUT_CHARS = 256 * 2 ** 20;
/** A kernel makes no more cells than a notebook can be worked with: each costs something with every change. */
const MAX_CELLS = 10_000;

export class NotebookView {
  /** In document order. */
  #cells = new Map<string, ViewCell>();
  #variables: VariableGraph = [];
  #codeLength = 0;
  readonly #outputLengths = new Map<string, number>();
  #outputLength = 0;
  /** Of the figures that cells have shown among what they print. */
  #mediaLength = 0;

  constructor(cells: readonly SavedCell[]) {
    for (const cell of cells) this.add(cell.cell_id, cell.code, cell.options);
  }

  get cells(): readonly ViewCell[] {
    return [...this.#cells.values()];
  }
  /** Whether a kernel may add so much code, in a new cell or in one that it has. */
  hasRoomFor(codeLength: number, inNewCell: boolean): boolean {
    return this.#codeLength + codeLength <= MAX_CODE_CHARS && !(inNewCell && this.#cells.size >= MAX_CELLS);
  }
  get variables(): VariableGraph {
    return this.#variables;
  }
  get(cellId: string): ViewCell | undefined {
    return this.#cells.get(cellId);
  }

  add(id: string, code: string, options: Readonly<Record<string, unknown>>): ViewCell {
    const cell: ViewCell = {
      id,
      code,
      options,
      version: 0,
      activity: 'idle',
      stale: true,
      output: null,
      console: new ConsoleTail(),
      ended: null,
      structural: [],
    };
    this.#cells.set(id, cell);
    this.#codeLength += code.length;
    return cell;
  }

  remove(cellId: string): boolean {
    this.#codeLength -= this.#cells.get(cellId)?.code.length ?? 0;
    this.#mediaLength -= this.#cells.get(cellId)?.console.mediaSize ?? 0;
    this.#noteOutput(cellId, 0);
    return this.#cells.delete(cellId);
  }

  /** Orders the cells by these ids. Unknown ids are ignored; cells that are not named keep their order after the others. */
  reorder(order: readonly string[]): void {
    const sorted = new Map<string, ViewCell>();
    for (const id of [...order, ...this.#cells.keys()]) {
      const cell = this.#cells.get(id);
      if (cell !== undefined) sorted.set(id, cell);
    }
    this.#cells = sorted;
  }

  setCode(cell: ViewCell, code: string): void {
    if (cell.code === code) return;
    this.#codeLength += code.length - cell.code.length;
    cell.code = code;
    cell.version++;
    cell.structural = [];
    cell.stale = true;
  }

  setVariables(variables: VariableGraph): void {
    this.#variables = variables;
  }

  /** Null members leave what is known; an empty console clears it, entries append. */
  applyCellOp(op: CellOp): ViewCell | undefined {
    const cell = this.#cells.get(op.cellId);
    if (cell === undefined) return undefined;
    if (op.status !== null) cell.activity = op.status;
    if (op.staleInputs !== null) cell.stale = op.staleInputs;
    if (op.output !== null) cell.output = this.#admitOutput(op.cellId, op.output);
    if (op.console?.length === 0) {
      this.#mediaLength -= cell.console.mediaSize;
      cell.console = new ConsoleTail();
    }
    for (const entry of op.console ?? []) this.#addToConsole(cell, entry);
    return cell;
  }

  /** Gives a cell what it showed when the notebook was open the last time. */
  restore(cell: ViewCell, output: CellOutput | null, console: readonly CellOutput[]): void {
    cell.output = output === null ? null : this.#admitOutput(cell.id, output);
    for (const entry of console) this.#addToConsole(cell, entry);
  }

  #addToConsole({ console }: ViewCell, entry: CellOutput): void {
    const before = console.mediaSize;
    console.add(entry, MAX_OUTPUT_CHARS - this.#outputLength - this.#mediaLength);
    this.#mediaLength += console.mediaSize - before;
  }

  #admitOutput(cellId: string, output: CellOutput): CellOutput {
    const length = typeof output.data === 'string' ? output.data.length : JSON.stringify(output.data).length;
    const others = this.#outputLength - (this.#outputLengths.get(cellId) ?? 0);
    const isAdmitted = others + this.#mediaLength + length <= MAX_OUTPUT_CHARS;
    this.#noteOutput(cellId, isAdmitted ? length : 0);
    if (isAdmitted) return output;
    const data = `This output was not kept: all outputs of a notebook may have ${MAX_OUTPUT_CHARS / 2 ** 20} MiB.`;
    return { channel: 'output', mimetype: 'text/plain', data, timestamp: output.timestamp };
  }

  #noteOutput(cellId: string, length: number): void {
    this.#outputLength += length - (this.#outputLengths.get(cellId) ?? 0);
    if (length === 0) this.#outputLengths.delete(cellId);
    else this.#outputLengths.set(cellId, length);
  }

  /** Applies the kernel's verdict on every cell and returns the cells that look different now. */
  applyVerdicts(done: BridgeDone): ViewCell[] {
    const changed: ViewCell[] = [];
    for (const [cellId, verdict] of done.cells) {
      const cell = this.#cells.get(cellId);
      if (cell === undefined) continue;
      const before = shownStatus(cell);
      const { stale } = cell;
      cell.ended = verdict.status;
      cell.structural = verdict.errors;
      cell.stale = verdict.stale || (isUnfinished(verdict.status) && cell.code.trim() !== '');
      if (cell.activity !== 'disabled-transitively') cell.activity = 'idle';
      if (before !== shownStatus(cell) || stale !== cell.stale) changed.push(cell);
    }
    return changed;
  }

  /** Everything the kernel held is gone: outputs stay to be shown, every cell is stale. */
  kernelLost(): void {
    for (const cell of this.#cells.values()) {
      cell.activity = 'idle';
      cell.stale = true;
      cell.ended = null;
    }
    this.#variables = [];
  }

  /** Cells and everything they depend on, by the variables the kernel knows of, in document order. */
  ancestors(cellIds: Iterable<string>): Set<string> {
    const parents = new Map<string, Set<string>>();
    for (const { declaredBy, usedBy } of this.#variables) {
      for (const user of usedBy) {
        const known = parents.get(user) ?? new Set();
        for (const owner of declaredBy) known.add(owner);
        parents.set(user, known);
      }
    }
    const found = new Set<string>();
    const open = [...cellIds];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (found.has(id)) continue;
      found.add(id);
      open.push(...(parents.get(id) ?? []));
    }
    return new Set([...this.#cells.keys()].filter((id) => found.has(id)));
  }
}

/** Its code has not run to its end, whatever the kernel marks: it runs again before whatever depends on it. */
function isUnfinished(status: CellStatus): boolean {
  return status === null || status === 'interrupted' || status === 'cancelled';
}

export function shownStatus(cell: ViewCell): ShownStatus {
  if (cell.activity === 'running' || cell.activity === 'queued') return cell.activity;
  if (cell.activity === 'disabled-transitively' || configOf(cell.options).disabled) return 'disabled';
  if (cell.structural.length > 0) return 'error';
  if (cell.stale) return 'stale';
  return cell.ended === 'exception' || cell.ended === 'marimo-error' ? 'error' : 'idle';
}
