/**
 * Converts a store from one format to the next, in passes over the records of a kind.
 *
 * A place in the passes (the cursor) is committed together with the records that were converted up
 * to it. So a conversion that is interrupted, however often, continues where its last commit ended,
 * and converts no record twice. Commits are large, because each of them waits for the disk, and
 * bounded, because each of them is held in memory as a whole.
 */
import { defineRecord, encodeRecord, type MarkKind, type RecordKind } from '../codec.ts';
import { SYSTEM } from '../keys.ts';
import { userWorkspaces } from '../records/identity.ts';
import type { Store } from '../store.ts';
import type { Transaction } from '../transaction.ts';

/** The most records that one commit converts. A single record may be larger. */
const MAX_RECORDS = 4000;
const MAX_BYTES = 8 * 1024 * 1024;
/** How often progress is reported. */
const REPORT_EVERY_MS = 5000;

/** One record of a pass. */
export interface PassRecord<T> {
  /** The parts of its key after the kind. */
  readonly ids: readonly string[];
  /** Undefined when the record is damaged, and where the pass reads keys only. */
  readonly value: T | undefined;
}

/**
 * Reads all records of a kind in a partition, or those under a prefix, in key order, and converts
 * each of them.
 */
export interface Pass<T> {
  readonly kind: RecordKind<T>;
  readonly partition: string;
  readonly prefix?: readonly string[];
  readonly keysOnly?: true;
  /**
   * Converts one record. If it adds records of the kind that the pass reads, the pass may read the
   * added ones as well.
   */
  convert(tx: Transaction, record: PassRecord<T>): void;
  /** Writes the final records of the pass, in the last commit of the pass. */
  end?(tx: Transaction): void;
}

/**
 * Returns the passes that convert a store from one format to the next. During the conversion it must return the same
 * passes in the same order, however many records are converted. Another release may have other passes, and then
 * begins again from the first of them: the result must be the same.
 */
export type Migration = (store: Store) => Iterable<Pass<unknown>>;

/** How far a conversion is. */
export interface MigrationProgress {
  /** The formats before and after the conversion. */
  readonly from: number;
  readonly to: number;
  /** Records. */
  readonly done: number;
  readonly total: number;
  /** Records converted since this process has begun or resumed the conversion. */
  readonly recordsPerS: number;
  /** Seconds that are left at this rate; undefined while there is no rate yet. */
  readonly leftS: number | undefined;
}

/** Returns the progress as one sentence. */
export function describeProgress(progress: MigrationProgress): string {
  const { from, to, done, total, recordsPerS, leftS } = progress;
  const left = leftS === undefined ? '' : `, ${recordsPerS} a second, ${leftS} s left`;
  return `The store is being converted from format ${from} to ${to}: ${done} of ${total} records (${percentOf(progress)} %${left}).`;
}

/** Returns how much of a step is done, in whole percent. */
export function percentOf({ done, total }: MigrationProgress): number {
  return total === 0 ? 100 : Math.floor((done / total) * 100);
}

/** The place in a conversion. */
interface Cursor {
  /** The format that is converted. */
  readonly from: number;
  /** The current pass, and the kind of its records. The kind shows whether this release has the same passes. */
  readonly pass: number;
  readonly reads: string;
  /** The ids of the last record that is converted; empty at the beginning of a pass. */
  readonly after: readonly string[];
  /** Records converted in all passes. */
  readonly done: number;
}

/** Key: SYSTEM. The record exists during a conversion. */
export const migrationCursor = defineRecord<Cursor>('migration-cursor', 1);

export interface ConvertOptions {
  readonly store: Store;
  readonly from: number;
  readonly migration: Migration;
  readonly onProgress: (progress: MigrationProgress) => void;
}

/** Resolves when every pass is committed. The cursor stays: it is removed in the commit that notes the new format. */
export async function convert({ store, from, migration, onProgress }: ConvertOptions): Promise<void> {
  const passes = [...migration(store)];
  let cursor = cursorOf(store, from, passes);
  const counts = passes.map((pass, at) => (at < cursor.pass ? 0 : countOf(store, pass, cursor, at)));
  let total = cursor.done + counts.reduce((sum, count) => sum + count, 0);
  const clock = new ProgressClock(cursor.done);
  const report = () =>
    onProgress({ from, to: from + 1, done: cursor.done, total, ...clock.rate(cursor.done, total) });
  report();
  for (let at = cursor.pass; at < passes.length; at++) {
    const pass = passes[at]!;
    // Earlier passes may have written records that this pass reads.
    const isBegun = cursor.after.length > 0;
    const count = isBegun ? counts[at]! : countOf(store, pass, cursor, at);
    total += count - counts[at]!;
    // Many workspaces have nothing to convert in most passes, and each commit waits for the disk.
    if (count === 0 && !isBegun && pass.end === undefined) cursor = beginningOf(passes, at + 1, cursor);
    while (cursor.pass === at) {
      cursor = convertBatch(store, passes, cursor);
      await store.durable();
      if (clock.isDue()) report();
    }
  }
  report();
}

/** Converts the records of one commit. Returns the place after them. */
function convertBatch(store: Store, passes: readonly Pass<unknown>[], cursor: Cursor): Cursor {
  const pass = passes[cursor.pass]!;
  return store.write((inner) => {
    const tx = new MeasuredTransaction(inner);
    let { after, done } = cursor;
    let records = 0;
    let bytesRead = 0;
    let isOver = true;
    for (const { ids, value, byteLength } of recordsOf(store, pass, after)) {
      if (records === MAX_RECORDS || bytesRead + tx.bytes >= MAX_BYTES) {
        isOver = false;
        break;
      }
      pass.convert(tx, { ids, value });
      after = ids;
      bytesRead += byteLength;
      records++;
      done++;
    }
    if (isOver) pass.end?.(tx);
    const place = isOver
      ? beginningOf(passes, cursor.pass + 1, { from: cursor.from, done })
      : { ...cursor, after, done };
    tx.put(migrationCursor, place, SYSTEM);
    return place;
  });
}

function* recordsOf<T>(
  store: Store,
  { kind, partition, prefix = [], keysOnly }: Pass<T>,
  after: readonly string[],
): Generator<PassRecord<T> & { readonly byteLength: number }> {
  if (keysOnly !== true) return yield* store.listAfter(kind, partition, prefix, after);
  const beyond = after.length === 0 ? undefined : after;
  for (const ids of store.listKeys(kind, partition, prefix, MAX_RECORDS + 1, beyond))
    yield { ids, value: undefined, byteLength: 0 };
}

/** Returns the place of an interrupted conversion, or the beginning. */
function cursorOf(store: Store, from: number, passes: readonly Pass<unknown>[]): Cursor {
  const found = store.get(migrationCursor, SYSTEM);
  if (found?.from === from && found.reads === readsOf(passes[found.pass])) return found;
  return beginningOf(passes, 0, { from, done: 0 });
}

function beginningOf(
  passes: readonly Pass<unknown>[],
  pass: number,
  { from, done }: Pick<Cursor, 'from' | 'done'>,
): Cursor {
  return { from, pass, reads: readsOf(passes[pass]), after: [], done };
}

function readsOf(pass: Pass<unknown> | undefined): string {
  return pass === undefined ? '' : [pass.partition, pass.kind.name, ...(pass.prefix ?? [])].join('/');
}

/** Returns how many records a pass has to read. */
function countOf(
  store: Store,
  { kind, partition, prefix = [] }: Pass<unknown>,
  cursor: Cursor,
  at: number,
): number {
  return store.countKeys(kind, partition, prefix, at === cursor.pass ? cursor.after : []);
}

/** Measures the speed of a conversion, and decides when to report its progress. */
class ProgressClock {
  readonly #startedAt = performance.now();
  readonly #doneBefore: number;
  #reportedAt = this.#startedAt;

  constructor(doneBefore: number) {
    this.#doneBefore = doneBefore;
  }

  isDue(): boolean {
    const now = performance.now();
    if (now - this.#reportedAt < REPORT_EVERY_MS) return false;
    this.#reportedAt = now;
    return true;
  }

  rate(done: number, total: number): Pick<MigrationProgress, 'recordsPerS' | 'leftS'> {
    const recordsPerS = Math.round(
      ((done - this.#doneBefore) * 1000) / (performance.now() - this.#startedAt),
    );
    return { recordsPerS, leftS: recordsPerS === 0 ? undefined : Math.ceil((total - done) / recordsPerS) };
  }
}

/** A transaction that counts the bytes that were put. */
class MeasuredTransaction implements Transaction {
  bytes = 0;
  readonly #inner: Transaction;

  constructor(inner: Transaction) {
    this.#inner = inner;
  }

  get<T>(kind: RecordKind<T>, partition: string, ...ids: string[]): T | undefined {
    return this.#inner.get(kind, partition, ...ids);
  }

  put<T>(kind: RecordKind<T>, value: T, partition: string, ...ids: string[]): void {
    this.putEncoded({ kind, bytes: encodeRecord(kind, value) }, partition, ...ids);
  }

  mark(kind: MarkKind, partition: string, ...ids: string[]): void {
    this.bytes += kind.bytes.byteLength;
    this.#inner.mark(kind, partition, ...ids);
  }

  putEncoded(record: Parameters<Transaction['putEncoded']>[0], partition: string, ...ids: string[]): void {
    this.bytes += record.bytes.byteLength;
    this.#inner.putEncoded(record, partition, ...ids);
  }

  remove(kind: RecordKind<unknown>, partition: string, ...ids: string[]): void {
    this.#inner.remove(kind, partition, ...ids);
  }
}

/** Returns a pass that converts sound records only. `convertSound` gets the value and the parts of the key after the kind. */
export function passOver<T>(
  kind: RecordKind<T>,
  partition: string,
  prefix: readonly string[],
  convertSound: (tx: Transaction, value: T, ids: readonly string[]) => void,
): Pass<T> {
  return {
    kind,
    partition,
    prefix,
    convert(tx, { ids, value }) {
      if (value !== undefined) convertSound(tx, value, ids);
    },
  };
}

/** Yields every workspace that has a member. No conversion may change these records. */
export function* workspacesOf(store: Store): Generator<string> {
  const seen = new Set<string>();
  for (const [, workspaceId] of store.listKeys(userWorkspaces, SYSTEM, [], Number.MAX_SAFE_INTEGER)) {
    if (workspaceId === undefined || seen.has(workspaceId)) continue;
    seen.add(workspaceId);
    yield workspaceId;
  }
}
