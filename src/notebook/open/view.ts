/**
 * The known state of an open notebook's cells: the document, and the kernel's reports about each cell. The view is pure state: it
 * applies the kernel's messages and never asks the kernel. The view outlives kernels; `kernelLost` notes that a kernel is gone.
 */
import type {
  BridgeDone,
  CellError,
  CellOp,
  CellOutput,
  CellStatus,
  CellVerdict,
} from '#src/confined/processes/kernel/messages.ts';
import type { Cell } from '#src/contract/wire/notebook.ts';
import type { ShownStatus } from '#src/contract/wire/session.ts';
import { configOf } from '../saved/document.ts';
import { ConsoleTail } from './console-tail.ts';
import { Dependencies, type VariableGraph } from './dependencies.ts';
import { charsOf, charsOfValue, HeldChars, MAX_HELD_CHARS } from './held-chars.ts';

export interface ViewCell {
  readonly id: string;
  code: string;
  options: Readonly<Record<string, unknown>>;
  /**
   * Grows with each saved change of the code, the name or the settings. A cell never gets an
   * earlier version again, even if it was deleted and made anew or the server was restarted. So a
   * change that names a version cannot undo a change that its author has not seen.
   */
  version: number;
  /** The version of the code as the kernel's code mode counts it. Code mode refuses edits of code that was not read. */
  codeVersion: number;
  activity: 'idle' | 'queued' | 'running' | 'disabled-transitively';
  stale: boolean;
  output: CellOutput | null;
  console: ConsoleTail;
  /**
   * The cell's last run in this kernel: the code, when it began, and how long it took (null while
   * it runs). Null before the first run.
   */
  ran: { readonly code: string; readonly beganS: number; ms: number | null } | null;
  /** How the cell's last run ended; null while the cell has not run in this kernel. */
  ended: CellStatus;
  structural: readonly CellError[];
  /** The last report of this kernel on the cell, from the end of a command; null before the first report. */
  verdict: CellVerdict | null;
  /** The code that the kernel has, if that is not the cell's present code; null otherwise. */
  kernelCode: string | null;
  /** The cell as it was saved last, which may have earlier code or options; undefined for a cell that was never saved. */
  saved: Cell | undefined;
  /**
   * Whether the kernel has got the present code as an edit and has not begun to run it. The reports of the kernel until then,
   * such as the end of the run during which the cell was edited, are about earlier code.
   */
  isUnrunEdit: boolean;
}

/** The most code to which a notebook may grow while it is open. `MAX_HELD_CHARS` limits its outputs. */
export const MAX_CODE_CHARS = 16 * 2 ** 20;
/**
 * The most cells that an open notebook may have. A notebook with more cells would be too slow, because each cell costs something
 * with every change.
 */
export const MAX_CELLS = 10_000;
/** The memory of a variable, and of each mention of a cell by its id, in addition to the text of the name or the id. */
const VARIABLE_CHARS = 100;
const CELL_MENTION_CHARS = 20;
/** The id under which events name the code that runs outside of cells. */
export const SCRATCH = '__scratch__';
const LEFT_OUT = `all that a notebook shows may have ${MAX_HELD_CHARS / 2 ** 20} MiB.`;

export class NotebookView {
  /** In document order. */
  #cells = new Map<string, ViewCell>();
  /** The values and keys of `#cells`; undefined since cells were added, removed or moved. */
  #list: readonly ViewCell[] | undefined;
  #order: readonly string[] | undefined;
  /** The cells with structural errors. */
  readonly #broken = new Set<ViewCell>();
  /**
   * The cells whose state may differ from the kernel's last verdict on them. The next end of a command settles them by that verdict,
   * even if it brings no new one.
   */
  readonly #unsettled = new Set<ViewCell>();
  #variables: VariableGraph = [];
  #dependencies = this.#dependenciesBy(this.#variables);
  #codeLength = 0;
  /** The output of the code outside of cells, which is never a cell. */
  #scratch = { output: null as CellOutput | null, console: new ConsoleTail() };
  #widgets: string | undefined;
  /** The keys are `output <cell id>`, `errors <cell id>`, the console object of a cell, `variables` and `widgets`. */
  readonly #held = new HeldChars();
  /**
   * The version for cells that change now. Two saves of a notebook are never in the same
   * millisecond, so no cell has had this version yet.
   */
  #nextVersion: number;

  /** Takes the cells of a notebook that was saved at `updatedAt`. */
  constructor(cells: readonly Cell[], updatedAt: string = new Date(0).toISOString()) {
    this.#nextVersion = Date.parse(updatedAt);
    for (const cell of cells) this.add(cell.cell_id, cell.code, cell.options).saved = cell;
    this.saved(updatedAt);
  }

  /** Notes that the changes until now were saved at this time. */
  saved(updatedAt: string): void {
    this.#nextVersion = Date.parse(updatedAt) + 1;
  }

  get cells(): readonly ViewCell[] {
    this.#list ??= [...this.#cells.values()];
    return this.#list;
  }
  /** The ids of the cells. */
  get order(): readonly string[] {
    this.#order ??= [...this.#cells.keys()];
    return this.#order;
  }
  /** How many cells, and characters of code, may be added. */
  get room(): { readonly cells: number; readonly chars: number } {
    return { cells: MAX_CELLS - this.#cells.size, chars: MAX_CODE_CHARS - this.#codeLength };
  }
  /** Returns whether this much more code fits, in a new cell or an existing one. Shorter code always fits. */
  hasRoomFor(codeLength: number, inNewCell: boolean): boolean {
    const hasChars = codeLength <= 0 || codeLength <= MAX_CODE_CHARS - this.#codeLength;
    return hasChars && !(inNewCell && this.#cells.size >= MAX_CELLS);
  }
  get variables(): VariableGraph {
    return this.#variables;
  }
  get(cellId: string): ViewCell | undefined {
    return this.#cells.get(cellId);
  }

  /** Adds a cell at the end. `isRead` says whether the kernel's code mode has made the cell, and so knows its code. */
  add(id: string, code: string, options: Readonly<Record<string, unknown>>, isRead = true): ViewCell {
    const version = this.#nextVersion;
    const cell: ViewCell = {
      id,
      code,
      options,
      version,
      codeVersion: isRead ? 0 : version, // higher than the version that it has read of any earlier cell with this id
      activity: 'idle',
      stale: true,
      output: null,
      console: new ConsoleTail(),
      ran: null,
      ended: null,
      structural: [],
      verdict: null,
      kernelCode: null,
      saved: undefined,
      isUnrunEdit: false,
    };
    this.#cells.set(id, cell);
    this.#forgetOrder();
    this.#codeLength += code.length;
    return cell;
  }

  #forgetOrder(): void {
    this.#list = undefined;
    this.#order = undefined;
  }

  remove(cellId: string): boolean {
    const cell = this.#cells.get(cellId);
    if (cell === undefined) return false;
    this.#codeLength -= cell.code.length;
    this.#held.set(cell.console, 0);
    for (const what of ['output', 'errors']) this.#held.set(`${what} ${cellId}`, 0);
    this.#broken.delete(cell);
    this.#unsettled.delete(cell);
    this.#forgetOrder();
    return this.#cells.delete(cellId);
  }

  /**
   * Sorts the cells in the order of these ids. Unknown ids are ignored. Cells that are not named come last, in their present
   * order.
   */
  reorder(order: readonly string[]): void {
    const sorted = new Map<string, ViewCell>();
    for (const id of [...order, ...this.#cells.keys()]) {
      const cell = this.#cells.get(id);
      if (cell !== undefined) sorted.set(id, cell);
    }
    this.#cells = sorted;
    this.#forgetOrder();
  }

  /** Gives a cell new code. `isAhead` says whether the kernel gets the code later than the view. */
  setCode(cell: ViewCell, code: string, isAhead = false): void {
    if (cell.code === code) return;
    this.#unsettled.add(cell);
    if (isAhead) cell.kernelCode ??= cell.code;
    else cell.isUnrunEdit = false;
    this.#codeLength += code.length - cell.code.length;
    cell.code = code;
    cell.version = this.#nextVersion;
    cell.codeVersion++;
    if (cell.structural.length > 0) this.#setErrors(cell, []);
    cell.stale = true;
  }

  /** Notes that the kernel runs a cell with this code, and gets the present code later. */
  codeRuns(cell: ViewCell, code: string): void {
    cell.kernelCode = code;
    this.#unsettled.add(cell);
  }

  /**
   * Notes that the kernel has got the present code of a cell: errors that it has reported of earlier code no longer count. With
   * `isOwn` the kernel has made the code itself. Returns the cell if it had such errors.
   */
  codeDelivered(cellId: string, isOwn = false): ViewCell | undefined {
    const cell = this.#cells.get(cellId);
    if (cell === undefined || cell.kernelCode === null) return undefined;
    this.#unsettled.add(cell);
    cell.isUnrunEdit = !isOwn && (cell.isUnrunEdit || isAheadOfKernel(cell));
    cell.kernelCode = null;
    if (cell.structural.length === 0) return undefined;
    this.#setErrors(cell, []);
    return cell;
  }

  setOptions(cell: ViewCell, options: Readonly<Record<string, unknown>>): void {
    cell.options = options;
    cell.version = this.#nextVersion;
  }

  /** Sets the variables that the kernel has. If they and their names take too much memory, none are kept. */
  setVariables(variables: VariableGraph): void {
    this.#variables = this.#held.admit('variables', charsOfVariables(variables)) ? variables : [];
    this.#dependencies = this.#dependenciesBy(this.#variables);
  }

  /** Sets the state of widgets that `takeWidgets` returns next. A state that takes too much memory is dropped. */
  setWidgets(widgets: string): void {
    this.#widgets = this.#held.admit('widgets', widgets.length) ? widgets : undefined;
  }

  /** Returns, once, the state of all widgets if it has changed since the last call. */
  takeWidgets(): string | undefined {
    const widgets = this.#widgets;
    this.#widgets = undefined;
    this.#held.set('widgets', 0);
    return widgets;
  }

  /**
   * Applies an operation of the kernel. Null members keep the known values. An empty console clears the console, and otherwise
   * its entries are appended.
   */
  applyCellOp(op: CellOp): ViewCell | undefined {
    const cell = this.#cells.get(op.cellId);
    if (cell === undefined) return undefined;
    if (op.status !== null || op.staleInputs !== null) this.#unsettled.add(cell);
    if (op.status !== null) {
      cell.activity = op.status;
      if (op.status === 'running') {
        cell.ran = { code: cell.kernelCode ?? cell.code, beganS: op.timestamp, ms: null };
        cell.isUnrunEdit = false;
      }
      if (op.status !== 'running' && cell.ran?.ms === null)
        cell.ran.ms = Math.max(0, (op.timestamp - cell.ran.beganS) * 1000);
    }
    if (op.staleInputs !== null) cell.stale = op.staleInputs || isNewerThanReports(cell);
    if (op.output !== null) cell.output = this.#admitOutput(op.cellId, op.output);
    if (op.console?.length === 0) {
      this.#held.set(cell.console, 0);
      cell.console = new ConsoleTail();
    }
    for (const entry of op.console ?? []) this.#addToConsole(cell, entry);
    return cell;
  }

  /** Keeps the value and the figures of code outside of cells, until `clearScratch`. */
  applyScratchOp({ output, console }: CellOp): void {
    if (output !== null) this.#scratch.output = this.#admitOutput(SCRATCH, output);
    for (const entry of console ?? [])
      if (entry.channel === 'media') this.#addToConsole(this.#scratch, entry);
  }

  /** Forgets the outputs of the last code outside of cells. */
  clearScratch(): void {
    this.#held.set(`output ${SCRATCH}`, 0);
    this.#held.set(this.#scratch.console, 0);
    this.#scratch = { output: null, console: new ConsoleTail() };
  }

  /** Yields the displayed values and figures, each with its cell, including those of code outside of cells. */
  *shown(): Generator<readonly [cellId: string, CellOutput], undefined> {
    for (const { id, output, console } of [...this.#cells.values(), { id: SCRATCH, ...this.#scratch }]) {
      if (output !== null) yield [id, output];
      for (const figure of console.media()) yield [id, figure];
    }
  }

  /** Gives a cell the output that it had when the notebook was last open. */
  restore(cell: ViewCell, output: CellOutput | null, console: readonly CellOutput[]): void {
    cell.output = output === null ? null : this.#admitOutput(cell.id, output);
    for (const entry of console) this.#addToConsole(cell, entry);
  }

  #addToConsole({ console }: { readonly console: ConsoleTail }, entry: CellOutput): void {
    console.add(entry, this.#held.room);
    this.#held.set(console, console.heldChars);
  }

  #dependenciesBy(variables: VariableGraph): Dependencies {
    return new Dependencies(variables, (cellId) => this.#cells.has(cellId));
  }

  #admitOutput(cellId: string, output: CellOutput): CellOutput {
    if (this.#held.admit(`output ${cellId}`, charsOf(output))) return output;
    const data = `This output was not kept: ${LEFT_OUT}`;
    return { channel: 'output', mimetype: 'text/plain', data, timestamp: output.timestamp };
  }

  #setErrors(cell: ViewCell, errors: readonly CellError[]): void {
    const chars = errors.length === 0 ? 0 : charsOfValue(errors);
    cell.structural = this.#held.admit(`errors ${cell.id}`, chars)
      ? errors
      : [{ type: 'errors-left-out', msg: `Its errors were not kept: ${LEFT_OUT}` }];
    if (cell.structural.length > 0) this.#broken.add(cell);
    else this.#broken.delete(cell);
  }

  /**
   * Applies the kernel's verdicts on cells that may have changed and returns the cells whose shown state has changed. The kernel does
   * not know edits that have not reached it, so cells that used the value of an edited cell are stale, too.
   */
  applyVerdicts(done: BridgeDone): ViewCell[] {
    for (const [cellId, verdict] of done.cells) {
      const cell = this.#cells.get(cellId);
      if (cell === undefined) continue;
      cell.verdict = verdict;
      this.#unsettled.add(cell);
    }
    const edited = [...this.#unsettled].filter(isAheadOfKernel).map(({ id }) => id);
    const outdated = edited.length === 0 ? undefined : this.firstNeeded(edited);
    for (const cellId of outdated?.keys() ?? []) {
      const cell = this.#cells.get(cellId);
      if (cell !== undefined) this.#unsettled.add(cell);
    }
    const changed: ViewCell[] = [];
    for (const cell of this.#unsettled) {
      const { verdict, stale } = cell;
      if (verdict === null) continue;
      const before = shownStatus(cell);
      cell.ended = verdict.status;
      if (cell.structural.length > 0 || verdict.errors.length > 0) this.#setErrors(cell, verdict.errors);
      const isOutdated = outdated?.has(cell.id) === true;
      cell.stale =
        verdict.stale ||
        isNewerThanReports(cell) ||
        isOutdated ||
        (isUnfinished(verdict.status) && cell.code.trim() !== '');
      if (cell.activity !== 'disabled-transitively') cell.activity = 'idle';
      if (before !== shownStatus(cell) || stale !== cell.stale) changed.push(cell);
      if (!isOutdated && !isNewerThanReports(cell)) this.#unsettled.delete(cell);
    }
    return changed;
  }

  /** Notes that all state of the kernel is lost: outputs stay visible, and every cell is stale. */
  kernelLost(): void {
    for (const cell of this.#cells.values()) {
      cell.activity = 'idle';
      cell.stale = true;
      cell.ended = null;
      cell.ran = null;
      cell.verdict = null;
      cell.kernelCode = null;
      cell.isUnrunEdit = false;
    }
    this.#unsettled.clear();
    this.setVariables([]);
  }

  /** Whether any cell has structural errors. */
  get hasStructuralErrors(): boolean {
    return this.#broken.size > 0;
  }

  /** Whether no cell has a syntax error that the kernel has reported; new code counts as valid until it is checked. */
  get isValid(): boolean {
    for (const cell of this.#broken)
      if (!isAheadOfKernel(cell) && cell.structural.some(({ type }) => type === 'syntax')) return false;
    return true;
  }

  /** Returns these cells and all cells that they depend on, by the variables that the kernel knows of, in document order. */
  ancestors(cellIds: Iterable<string>): Set<string> {
    const found = this.#dependencies.ancestors(cellIds);
    return new Set([...this.#cells.keys()].filter((id) => found.has(id)));
  }

  /** Returns the ids of the cells that are keys of a map, in the order of the notebook. */
  inOrder(found: ReadonlyMap<string, unknown>): string[] {
    return [...this.#cells.keys()].filter((id) => found.has(id));
  }

  /** Returns, for each cell that depends on one of these directly or not, the first of these that the cell depends on. */
  firstNeeded(cellIds: Iterable<string>): Map<string, string> {
    return this.#dependencies.firstNeeded(cellIds);
  }
}

function charsOfVariables(variables: VariableGraph): number {
  const charsOfIds = (ids: readonly string[]) =>
    ids.reduce((sum, id) => sum + CELL_MENTION_CHARS + id.length, 0);
  return variables.reduce(
    (sum, { name, declaredBy, usedBy }) =>
      sum + VARIABLE_CHARS + name.length + charsOfIds(declaredBy) + charsOfIds(usedBy),
    0,
  );
}

/** Returns whether the cell has newer code than the kernel. The kernel's reports are then about the earlier code. */
function isAheadOfKernel({ code, kernelCode }: ViewCell): boolean {
  return kernelCode !== null && kernelCode !== code;
}

/** Returns whether the kernel's reports describe earlier code of the cell. Its present code has not run. */
function isNewerThanReports(cell: ViewCell): boolean {
  return isAheadOfKernel(cell) || (cell.isUnrunEdit && cell.code.trim() !== '');
}

/**
 * Returns whether the code of the cell has not run to its end, even if the kernel marks the cell as fresh. Such a cell runs again
 * before its dependents.
 */
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
