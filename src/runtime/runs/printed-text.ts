/**
 * The printed text of runs in progress. It is stored while a run lasts. If the server dies before
 * the run ends, the run still shows the text that its cells printed, up to the last second.
 */
import type { RunId, WorkspaceId } from '#src/base/ids.ts';
import type { Output } from '#src/contract/wire/output.ts';
import type { OutputPart, RunOutput } from '#src/contract/wire/run.ts';
import { type PrintedTextRecord, printedTexts } from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import { omittedTextWarning } from './run-output.ts';

/** The text that a cell has printed so far. */
export interface PrintedText extends Omit<PrintedTextRecord, 'place'> {
  readonly cellId: string;
}

/**
 * The most characters of one run. When the cells of the run have printed more, the text of the first cells is left out.
 */
const MAX_RUN_CHARS = 4 * 2 ** 20;

const LEFT_BEHIND =
  'The server ended before this run did. Only printed text is kept of it, without that of its last second.';

/**
 * The cells of a run in progress that have stored text, in the order in which they first had text.
 */
type StoredCells = Map<string, { readonly place: number; chars: number }>;

export class PrintedTexts {
  readonly #store: Store;
  /** The runs in progress that have stored text. */
  readonly #runs = new Map<RunId, StoredCells>();
  readonly #maxRunChars: number;

  constructor(store: Store, maxRunChars = MAX_RUN_CHARS) {
    this.#store = store;
    this.#maxRunChars = maxRunChars;
  }

  /** Stores the printed text of cells of a run in progress, in this turn's commit. */
  put(workspaceId: WorkspaceId, runId: RunId, texts: readonly PrintedText[]): void {
    const cells: StoredCells = this.#runs.get(runId) ?? new Map();
    this.#runs.set(runId, cells);
    this.#store.write((tx) => {
      for (const { cellId, ...text } of texts) {
        const place = cells.get(cellId)?.place ?? cells.size;
        cells.set(cellId, { place, chars: charsOf(text.console) });
        tx.put(printedTexts, { place, ...text }, workspaceId, runId, cellId);
      }
      this.#makeRoom(tx, workspaceId, runId, cells);
    });
  }

  /** Leaves out the text of the first cells until the run is within its limit. */
  #makeRoom(tx: Transaction, workspaceId: WorkspaceId, runId: RunId, cells: StoredCells): void {
    let total = 0;
    for (const { chars } of cells.values()) total += chars;
    for (const [cellId, cell] of cells) {
      if (total <= this.#maxRunChars) return;
      const record = cell.chars === 0 ? undefined : tx.get(printedTexts, workspaceId, runId, cellId);
      if (record === undefined) continue;
      const omitted = record.omitted + cell.chars;
      tx.put(printedTexts, { ...record, console: [], omitted }, workspaceId, runId, cellId);
      total -= cell.chars;
      cell.chars = 0;
    }
  }

  /** Removes the text of a run that ends, because the run's output contains it. */
  ended(tx: Transaction, workspaceId: WorkspaceId, runId: RunId): void {
    for (const cellId of this.#runs.get(runId)?.keys() ?? [])
      tx.remove(printedTexts, workspaceId, runId, cellId);
    this.#runs.delete(runId);
  }

  /** Removes the text of a run that a dead server left behind. */
  erase(tx: Transaction, workspaceId: WorkspaceId, runId: string): void {
    const keys = this.#store.listKeys(printedTexts, workspaceId, [runId], Number.POSITIVE_INFINITY);
    for (const [, cellId = ''] of [...keys]) tx.remove(printedTexts, workspaceId, runId, cellId);
  }

  /**
   * Returns the output of a run that a dead server left behind: the text that its cells printed. Null when the cells had printed
   * nothing.
   */
  outputOf(workspaceId: WorkspaceId, runId: string): RunOutput | null {
    const all = { limit: Number.POSITIVE_INFINITY };
    const cells = [...this.#store.list(printedTexts, workspaceId, [runId], all)];
    if (cells.length === 0) return null;
    cells.sort((one, other) => one.value.place - other.value.place);
    const results = cells.map(
      ({ id: cellId, value: { status, durationMs, console } }): OutputPart => ({
        type: 'cell-result',
        cellId,
        status,
        outputs: [],
        console: console as Output[],
        durationMs,
      }),
    );
    const cut = cells.flatMap(({ id, value: { omitted } }) =>
      omitted === 0 ? [] : [omittedTextWarning(id, id, omitted)],
    );
    const warning: OutputPart = { type: 'warning', code: 'output_lost', message: LEFT_BEHIND };
    return { stored: true, parts: [...results, ...cut, warning] };
  }
}

function charsOf(console: PrintedText['console']): number {
  return console.reduce(
    (sum, { data }) => sum + (typeof data === 'string' ? data.length : JSON.stringify(data).length),
    0,
  );
}
