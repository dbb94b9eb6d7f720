/**
 * The last outputs of a notebook's cells, which are stored apart from the notebook. A large output is a blob, which the asset of
 * its run shares.
 */

import type { WorkspaceId } from '#src/base/ids.ts';
import { isLongString } from '#src/base/json/prepared-strings.ts';
import type { CellOutput } from '#src/confined/processes/kernel/messages.ts';
import type { Cell } from '#src/contract/wire/notebook.ts';
import { OutputContents, textOf } from '#src/runtime/runs/output-content.ts';
import { bundleOf, MAX_INLINE_BYTES } from '#src/runtime/runs/run-output.ts';
import { DamagedRecord } from '#storage/codec.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { type BlobScope, blobRecords, releaseBlob, useBlob } from '#storage/records/blobs.ts';
import { type CellOutputRecord, cellOutputRecords, type HeldPart } from '#storage/records/notebooks.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { NotebookView, ViewCell } from '../open/view.ts';
import { codeMark } from './cells-json.ts';
import type { NotebookDocument } from './document.ts';

const MAX_OUTPUTS_AT_ONCE = 100;
/**
 * The state of all widgets is saved like the output of a cell with this id. No cell can have this id, because of the control
 * character.
 */
const WIDGETS = '\u0001widgets';
/** The mark of long code that the notebook no longer has. No present code has this mark. */
const OTHER_CODE = 'sha256:';

/** The output of a cell, and the mark of the code that produced it. */
export interface SavedOutput {
  readonly output: CellOutput | null;
  readonly console: readonly CellOutput[];
  readonly code: string;
}

/** The part of an open notebook that its saved outputs need. */
interface OpenCells {
  readonly workspaceId: WorkspaceId;
  readonly sessionId: string;
  readonly view: NotebookView;
  /** The document to save, which has the code of the view. */
  readonly document: NotebookDocument;
}

/**
 * Saves the last outputs of the cells that ran, so that they are shown when the notebook is opened again. On a full disk, nothing
 * is saved.
 */
export function keepOutputs(
  store: Store,
  { workspaceId, sessionId, view, document }: OpenCells,
  ran: ReadonlySet<string>,
  contents = new OutputContents(),
): void {
  if (store.isFull) return;
  store.write((tx) => {
    for (const saved of document.serialization.cells) {
      const cell = view.get(saved.cell_id);
      if (cell === undefined || !ran.has(cell.id)) continue;
      const { output } = cell;
      const code = markOfRun(cell, saved);
      putOutput(
        tx,
        { output, console: cell.console.entries(), code },
        contents,
        workspaceId,
        sessionId,
        cell.id,
      );
    }
    const widgets = view.takeWidgets();
    if (widgets === undefined) return;
    const data = { channel: 'output', mimetype: 'application/json', data: widgets, timestamp: 0 } as const;
    const output = widgets === '[]' ? null : data;
    putOutput(tx, { output, console: [], code: '' }, contents, workspaceId, sessionId, WIDGETS);
  });
}

/** Returns the mark of the code that has run, which may be older than the saved code. */
function markOfRun({ ran }: ViewCell, saved: Cell): string {
  if (ran === null || ran.code === saved.code) return codeMark(saved);
  return isLongString(ran.code) ? OTHER_CODE : ran.code;
}

type OutputKey = readonly [workspaceId: string, notebookId: string, cellId: string];

/** Replaces the saved output of a cell. */
function putOutput(
  tx: Transaction,
  { output, console, code }: SavedOutput,
  contents: OutputContents,
  ...key: OutputKey
): void {
  const before = unlessDamaged(() => tx.get(cellOutputRecords, ...key));
  const held: HeldPart[] = [];
  const [kept = null, ...printed] = [output, ...console].map((entry, index) => {
    if (entry === null) return null;
    contents.take(entry);
    return mapData(entry, (data, type) => {
      const text = typeof data === 'string' ? data : JSON.stringify(data);
      if (contents.known(text) === undefined && Buffer.byteLength(text) <= MAX_INLINE_BYTES) return data;
      const { sha256, urlStart, ...blob } = contents.of(text);
      useBlob(tx, { sha256, ...blob }, key[0], key[1]);
      held.push({ entry: index, type, sha256, urlStart, isJson: typeof data !== 'string' });
      return '';
    });
  });
  tx.put(cellOutputRecords, { output: kept, console: printed, code, held }, ...key);
  release(tx, before, key[0], key[1]);
}

/** Removes the saved output of a cell. If the record is damaged, its blobs are not known and stay. */
export function removeOutput(tx: Transaction, ...key: OutputKey): void {
  const before = unlessDamaged(() => tx.get(cellOutputRecords, ...key));
  release(tx, before, key[0], key[1]);
  tx.remove(cellOutputRecords, ...key);
}

function release(tx: Transaction, record: CellOutputRecord | undefined, ...scope: BlobScope): void {
  for (const { sha256 } of record?.held ?? []) releaseBlob(tx, sha256, ...scope);
}

/** Returns the entry with its data, or each value of its bundle, replaced by the result of `change`. */
function mapData(entry: CellOutput, change: (data: unknown, type: string) => unknown): CellOutput {
  const { mimetype, data } = entry;
  const bundle = bundleOf(entry);
  if (bundle === undefined) return { ...entry, data: change(data, mimetype) as CellOutput['data'] };
  const changed = Object.fromEntries(
    Object.entries(bundle).map(([type, value]) => [type, change(value, type)]),
  );
  return { ...entry, data: typeof data === 'string' ? JSON.stringify(changed) : changed };
}

/** Returns the output in a cell's record. */
function readOutput(store: Pick<Store, 'get'>, record: CellOutputRecord, ...scope: BlobScope): SavedOutput {
  const { held = [], code } = record;
  const entries = [record.output as CellOutput | null, ...(record.console as readonly CellOutput[])];
  const [output = null, ...console] = entries.map((entry, index) => {
    const parts = new Map(held.filter((part) => part.entry === index).map((part) => [part.type, part]));
    if (entry === null || parts.size === 0) return entry;
    return mapData(entry, (data, type) => {
      const part = parts.get(type);
      if (part === undefined) return data;
      const bytes = store.get(blobRecords, ...scope, part.sha256);
      if (bytes === undefined)
        throw new DamagedRecord(cellOutputRecords.name, 'a large part of it is missing');
      const text = textOf({ bytes, urlStart: part.urlStart });
      return part.isJson ? JSON.parse(text) : text;
    });
  });
  return { output, console: console.flatMap((entry) => entry ?? []), code };
}

/**
 * Yields the saved outputs of `cells`, and reads them one by one, so that the caller can stop early. Outputs of other code are
 * left out.
 */
export function* outputsOf(
  store: Store,
  workspaceId: WorkspaceId,
  notebookId: string,
  cells: readonly Cell[],
): Generator<readonly [cellId: string, SavedOutput]> {
  for (const cell of cells) {
    const { cell_id, code } = cell;
    const record = store.get(cellOutputRecords, workspaceId, notebookId, cell_id);
    const isOfThisCode = record !== undefined && (record.code === code || record.code === codeMark(cell));
    if (isOfThisCode) yield [cell_id, readOutput(store, record, workspaceId, notebookId)];
  }
}

/** Returns the saved state of the widgets of a notebook, as its kernel has sent it; undefined when the state is missing or damaged. */
export function widgetsOf(store: Store, workspaceId: WorkspaceId, notebookId: string): string | undefined {
  const data = unlessDamaged(() => {
    const record = store.get(cellOutputRecords, workspaceId, notebookId, WIDGETS);
    return record && readOutput(store, record, workspaceId, notebookId).output?.data;
  });
  return typeof data === 'string' ? data : undefined;
}

/**
 * Returns the saved outputs of all cells, by their ids, in steps: each step reads up to a hundred outputs, or one large output. A
 * damaged output is left out.
 */
export function* readOutputs(
  store: Store,
  workspaceId: WorkspaceId,
  notebookId: string,
): Generator<undefined, ReadonlyMap<string, SavedOutput>> {
  const outputs = new Map<string, SavedOutput>();
  let after: string | undefined;
  for (;;) {
    const page = { limit: MAX_OUTPUTS_AT_ONCE, ...(after === undefined ? {} : { after }) };
    let count = 0;
    let isLarge = false;
    for (const { id, value } of store.list(cellOutputRecords, workspaceId, [notebookId], page)) {
      count++;
      after = id;
      if (id === WIDGETS) continue;
      const output = unlessDamaged(() => readOutput(store, value, workspaceId, notebookId));
      if (output !== undefined) outputs.set(id, output);
      isLarge = value.held.length > 0;
      if (isLarge) break;
    }
    if (!isLarge && count < MAX_OUTPUTS_AT_ONCE) return outputs;
    yield;
  }
}
