/**
 * Sits between a client's socket and its driver, extracts the rows, and pauses the socket while no reader takes them.
 */
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import type { Client, Connection } from 'pg';
import { DatasourceFailure } from '../../failure.ts';
import { ROW_LIMIT_BYTES } from '../../rows.ts';
import { PostgresMessages, type PostgresRefusal } from './messages.ts';
import type { Field } from './values.ts';

/** Size of a batch of rows. */
const BATCH_BYTES = 512 * 1024;

const NO_COPY =
  'COPY TO STDOUT and COPY FROM STDIN are not supported here. Read rows with SELECT and write them with INSERT.';

function failureOf(why: PostgresRefusal): DatasourceFailure {
  if (why === 'copy') return new DatasourceFailure('query', undefined, NO_COPY);
  return new DatasourceFailure(why === 'too_large' ? 'row_too_large' : 'failed');
}

/** The tap of one client. */
export class PostgresTap {
  readonly #messages: PostgresMessages;
  #stream: Duplex | undefined;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** The columns of the running statement; `undefined` when it returns none. */
  fields: readonly Field[] | undefined;
  rowCount = 0;
  #wake: (() => void) | undefined;
  #ended: () => void = () => {};
  /** Resolves when the connection is lost. Some calls of the driver never resolve after that. */
  readonly gone = new Promise<void>((resolve) => {
    this.#ended = resolve;
  });

  /** Must be called before the client connects. */
  constructor(client: Client) {
    const driver = new EventEmitter();
    this.#messages = new PostgresMessages({
      forward: (bytes) => driver.emit('data', bytes),
      limitBytes: ROW_LIMIT_BYTES,
      refuse: (why) => this.#stream?.destroy(failureOf(why)),
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

  /** Takes the rows from now on. */
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

  /** Discards all rows until `close`. */
  discard(): void {
    this.#messages.sink = () => {};
    this.take();
  }

  /** Lets rows pass to the driver from now on. */
  close(): void {
    this.#messages.sink = undefined;
    this.take();
  }

  /** Resolves when a batch is full, or when the given promise has settled. */
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

  /** Returns the rows received so far, and resumes the socket. */
  take(): Buffer[] {
    const rows = this.#parts;
    this.#parts = [];
    this.#bytes = 0;
    this.#stream?.resume();
    return rows;
  }
}
