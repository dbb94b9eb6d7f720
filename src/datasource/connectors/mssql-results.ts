/** Rows of a request to SQL Server as they come; the request is paused while nobody takes them. */
import type { EventEmitter } from 'node:events';
import { RemoteError } from '../http-route.ts';
import type { Cell, Column, RowBatch } from '../rows.ts';
import { cellOf, columnOf, type TdsColumn } from './mssql-values.ts';

export interface TdsRequest extends EventEmitter {
  addParameter(name: string, type: unknown, value: unknown): void;
  pause(): void;
  resume(): void;
}

const BATCH_ROWS = 1000;

export class ResultQueue {
  #columns: readonly Column[] | undefined;
  #rows: Cell[][] = [];
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  #request: TdsRequest | undefined;
  ended = false;

  follow(request: TdsRequest): void {
    this.#request = request;
    request.on('columnMetadata', (columns: readonly TdsColumn[]) => {
      if (this.#columns !== undefined)
        return this.end(new RemoteError('SEVERAL', 'Only one result is supported.'));
      this.#columns = columns.map(columnOf);
    });
    request.on('row', (cells: readonly { readonly value: unknown; readonly metadata: TdsColumn }[]) => {
      this.#rows.push(cells.map(({ value, metadata }) => cellOf(value, metadata)));
      if (this.#rows.length < BATCH_ROWS) return;
      request.pause();
      this.#wake?.();
    });
  }

  end(error?: Error): void {
    this.ended = true;
    this.#error ??= error;
    this.#wake?.();
  }

  async *batches(): AsyncGenerator<RowBatch> {
    for (let batches = 0; ; batches++) {
      while (!this.ended && this.#rows.length < BATCH_ROWS) await this.#woken();
      if (this.#error !== undefined) throw this.#error;
      const rows = this.#rows;
      this.#rows = [];
      if (this.#columns !== undefined && (rows.length > 0 || batches === 0))
        yield { columns: this.#columns, rows };
      if (this.ended && this.#rows.length === 0) return;
      this.#request?.resume();
    }
  }

  async whenEnded(): Promise<void> {
    while (!this.ended) await this.#woken();
  }

  #woken(): Promise<void> {
    return new Promise((wake) => {
      this.#wake = wake;
    });
  }
}
