/**
 * Groups rows that a driver emits one by one into batches, and pauses the driver while the rows are
 * not read.
 */
import type { ResultColumn, RowBatch, RowValue } from '../rows.ts';

/** The driver's side of a queue. */
export interface RowSource {
  pause(): void;
  resume(): void;
  /** Returns the bytes received so far. Batches are limited by bytes, since values can have any size. */
  receivedBytes(): number;
}

const BATCH_ROWS = 1000;
const BATCH_BYTES = 512 * 1024;

/** The queue of rows between the driver of one statement and the reader of its result. */
export class RowQueue {
  readonly #source: RowSource;
  #columns: readonly ResultColumn[] | undefined;
  #rows: RowValue[][] = [];
  #bytesBefore: number;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  #isLeft = false;
  ended = false;

  constructor(source: RowSource) {
    this.#source = source;
    this.#bytesBefore = source.receivedBytes();
  }

  /** Stays `undefined` for a statement that returns no rows. */
  get columns(): readonly ResultColumn[] | undefined {
    return this.#columns;
  }

  set columns(columns: readonly ResultColumn[]) {
    this.#columns = columns;
  }

  /** Adds a row. Pauses the driver when a batch is full. */
  push(row: RowValue[]): void {
    if (this.#isLeft || this.ended) return;
    this.#rows.push(row);
    if (!this.#isFull()) return;
    this.#source.pause();
    this.#wake?.();
  }

  /** Makes `batches` throw, although the statement has not ended. The reader cancels it, and waits with `discardRest`. */
  fail(error: Error): void {
    this.#error ??= error;
    this.#wake?.();
  }

  /** Marks the result as complete, or as failed with `error`. */
  end(error?: Error): void {
    this.ended = true;
    this.#error ??= error;
    this.#wake?.();
  }

  /** Yields at least one batch when there are columns, even without rows. Throws the error that was passed to `end` or `fail`. */
  async *batches(): AsyncGenerator<RowBatch> {
    for (let batches = 0; ; batches++) {
      while (!this.ended && !this.#isFull() && this.#error === undefined) await this.#woken();
      if (this.#error !== undefined) throw this.#error;
      const isLast = this.ended;
      const rows = this.#rows;
      this.#rows = [];
      this.#bytesBefore = this.#source.receivedBytes();
      if (this.#columns !== undefined && (rows.length > 0 || batches === 0))
        yield { columns: this.#columns, rows };
      if (isLast) return;
      this.#source.resume();
    }
  }

  /** Discards the remaining rows. Resolves when the statement has ended. */
  async discardRest(): Promise<void> {
    this.#isLeft = true;
    this.#rows = [];
    this.#source.resume();
    while (!this.ended) await this.#woken();
  }

  #isFull(): boolean {
    if (this.#rows.length === 0) return false;
    return this.#rows.length >= BATCH_ROWS || this.#source.receivedBytes() - this.#bytesBefore >= BATCH_BYTES;
  }

  #woken(): Promise<void> {
    return new Promise((wake) => {
      this.#wake = wake;
    });
  }
}
