/** The place between a client's socket and its driver where rows are taken out, and held back while nobody takes them. */
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import type { Client, Connection } from 'pg';
import { DatasourceFailure } from '../../failure.ts';
import { ROW_LIMIT_BYTES } from '../../rows.ts';
import { PostgresMessages } from './messages.ts';
import type { Field } from './values.ts';

/** Rows that are given out together. */
const BATCH_BYTES = 512 * 1024;

export class PostgresTap {
  readonly #messages: PostgresMessages;
  #stream: Duplex | undefined;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Of the statement whose rows are taken; none when it gives none. */
  fields: readonly Field[] | undefined;
  rowCount = 0;
  #wake: (() => void) | undefined;
  #ended: () => void = () => {};
  /** Resolves when the connection is gone, after which the driver leaves some waiting for ever. */
  readonly gone = new Promise<void>((resolve) => {
    this.#ended = resolve;
  });

  /** Call before the client connects. */
  constructor(client: Client) {
    const driver = new EventEmitter();
    this.#messages = new PostgresMessages({
      forward: (bytes) => driver.emit('data', bytes),
      limitBytes: ROW_LIMIT_BYTES,
      refuse: () => this.#stream?.destroy(new DatasourceFailure('row_too_large')),
    });
    const connection: Connection = Reflect.get(client, 'connection');
    const attach: unknown = Reflect.get(connection, 'attachListeners');
    if (typeof attach !== 'function') throw new DatasourceFailure('failed');
    Reflect.set(connection, 'attachListeners', (stream: Duplex) => {
      this.#stream = stream;
      stream.on('data', (chunk: Buffer) => this.#messages.push(chunk));
      stream.on('end', () => driver.emit('end'));
      stream.on('close', () => this.#ended());
      attach.call(connection, driver);
    });
    connection.on('rowDescription', ({ fields }: { readonly fields: readonly Field[] }) => {
      this.fields = fields;
    });
  }

  /** From now on rows come here. */
  open(): void {
    this.fields = undefined;
    this.rowCount = 0;
    this.#messages.sink = (messages, count) => {
      this.#parts.push(messages);
      this.#bytes += messages.length;
      this.rowCount += count;
      if (this.#bytes < BATCH_BYTES) return;
      this.#stream?.pause();
      this.#wake?.();
    };
  }

  /** What comes from now on is thrown away, until `close`. */
  discard(): void {
    this.#messages.sink = () => {};
    this.take();
  }

  /** From now on rows go to the driver. */
  close(): void {
    this.#messages.sink = undefined;
    this.take();
  }

  /** Resolves when there are enough rows to be given out, or when the promise has settled, however it did. */
  async enoughOr(end: Promise<unknown>): Promise<void> {
    if (this.#bytes >= BATCH_BYTES) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      end.then(
        () => resolve(),
        () => resolve(),
      );
    });
    this.#wake = undefined;
  }

  /** The rows that are there; more may come. */
  take(): Buffer[] {
    const rows = this.#parts;
    this.#parts = [];
    this.#bytes = 0;
    this.#stream?.resume();
    return rows;
  }
}
