/** Rows of a driver that says them one by one, in batches; the driver is paused while nobody takes them. */
import type { Cell, Column, RowBatch } from '../rows.ts';

export interface RowSource {
  pause(): void;
  resume(): void;
  /** Received so far: what batches are measured by, since values may have any size. */
  receivedBytes(): number;
}

const BATCH_ROWS = 1000;
const BATCH_BYTES = 512 * 1024;

export class RowQueue {
  readonly #source: RowSource;
  #columns: readonly Column[] | undefined;
  #rows: Cell[][] = [];
  #bytesBefore: number;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  #isLeft = false;
  ended = false;

  constructor(source: RowSource) {
    this.#source = source;
    this.#bytesBefore = source.receivedBytes();
  }

  /** None are set by a statement that gives no rows. */
  get columns(): readonly Column[] | undefined {
    return this.#columns;
  }

  set columns(columns: readonly Column[]) {
    this.#columns = columns;
  }

  push(row: Cell[]): void {
    if (this.#isLeft) return;
    this.#rows.push(row);
    if (!this.#isFull()) return;
    this.#source.pause();
    this.#wake?.();
  }

  end(error?: Error): void {
    this.ended = true;
    this.#error ??= error;
    this.#wake?.();
  }

  /** At least one when there are columns, even without rows. Throws the error of the end. */
  async *batches(): AsyncGenerator<RowBatch> {
    for (let batches = 0; ; batches++) {
      while (!this.ended && !this.#isFull()) await this.#woken();
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

  /** Nobody wants more: what still comes is thrown away. Resolves at the end. */
  async leave(): Promise<void> {
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
