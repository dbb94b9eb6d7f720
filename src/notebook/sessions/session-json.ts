/**
 * The JSON of the records of open sessions. Clients read a session often, and writing its JSON takes most of the time of such
 * a read.
 */

import { MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import { isShortJson } from '#src/base/json/json-write.ts';
import type { NotebookSession } from '#src/contract/wire/session.ts';
import { shownStatus, type ViewCell } from '../open/view.ts';
import { configOf } from '../saved/document.ts';
import { type RecordParts, sessionRecord } from './notebook-session-record.ts';

/** The longest JSON that is kept. For longer JSON, the memory is worth more than the time. */
const MAX_KEPT_BYTES = 8 * 1024;

interface Kept extends Omit<RecordParts, 'shown'> {
  readonly startup: RecordParts['shown']['startup'];
  readonly notes: RecordParts['shown']['notes'];
  readonly cells: NotebookSession['cells'];
  readonly json: Uint8Array;
}

export class SessionJson {
  /** The kept JSON by the open notebook, so that the JSON leaves memory with the session. */
  readonly #kept = new WeakMap<object, Kept>();

  /**
   * Returns the record of a session as JSON. If its JSON is so long that it has to be written in slices, returns the record
   * itself. `owner` is the session's open notebook.
   */
  of(owner: object, parts: RecordParts): Uint8Array | NotebookSession {
    const kept = this.#kept.get(owner);
    if (kept !== undefined && isSame(kept, parts)) return kept.json;
    const { shown, ...named } = parts;
    const { startup, notes } = shown;
    const record = sessionRecord(parts);
    if (!isShortJson(record, MAX_SIZE_AT_ONCE)) return record;
    const json = Buffer.from(JSON.stringify(record));
    if (json.byteLength > MAX_KEPT_BYTES) this.#kept.delete(owner);
    else this.#kept.set(owner, { ...named, startup, notes, cells: record.cells, json });
    return json;
  }
}

/** Returns whether a record made from `parts` would be the same. */
function isSame(kept: Kept, { sessionId, peek, shown, kernelFacts, url }: RecordParts): boolean {
  return (
    kept.peek.snapshot === peek.snapshot && // snapshots never change
    kept.peek.isLost === peek.isLost &&
    kept.peek.createdAt === peek.createdAt &&
    kept.peek.updatedAt === peek.updatedAt &&
    kept.startup === shown.startup &&
    kept.notes === shown.notes &&
    kept.sessionId === sessionId &&
    kept.url === url &&
    showsSameCells(kept.cells, shown.view.cells) &&
    hasSameFacts(kept.kernelFacts, kernelFacts)
  );
}

function showsSameCells(kept: NotebookSession['cells'], cells: readonly ViewCell[]): boolean {
  if (kept.length !== cells.length) return false;
  for (let i = 0; i < cells.length; i++) {
    const [before, cell] = [kept[i]!, cells[i]!];
    const isUnchanged =
      before.cellId === cell.id &&
      before.version === cell.version &&
      before.stale === cell.stale &&
      before.status === shownStatus(cell) &&
      before.name === configOf(cell.options).name;
    if (!isUnchanged) return false;
  }
  return true;
}

function hasSameFacts(kept: RecordParts['kernelFacts'], facts: RecordParts['kernelFacts']): boolean {
  for (const name in facts) if (facts[name] !== kept[name]) return false;
  return true;
}
