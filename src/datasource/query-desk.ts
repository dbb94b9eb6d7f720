/**
 * Where one kernel's questions about datasources are answered. A result is read batch by batch, when the notebook asks
 * for the next; the one behind it is fetched meanwhile. Closing the desk ends every statement of that kernel.
 *
 * What a kernel says is untrusted: whatever it asks, it gets rows of datasources that its notebook lists and its opener
 * may read, or an error.
 */
import { AppError } from '#src/core/errors.ts';
import { DatasourceFailure } from './failure.ts';
import type { Queries, Reader } from './queries.ts';
import { encodeRows, parseParameters } from './row-wire.ts';
import type { RowBatch } from './rows.ts';

export interface QueryDeskOptions {
  readonly queries: Queries;
  /** Who opened the session; undefined when they may use no datasource (any more). */
  readonly reader: () => Reader | undefined;
  /** The datasources that the notebook lists. */
  readonly slugs: () => readonly string[];
}

interface OpenResult {
  readonly batches: AsyncGenerator<RowBatch>;
  readonly abort: AbortController;
  next: Promise<IteratorResult<RowBatch, void>>;
}

type Fields = Readonly<Record<string, unknown>>;

const MOST_RESULTS = 32;
/** A category as PEP 249 calls it; everything else is an OperationalError. */
const PYTHON_ERRORS: Readonly<Record<string, string>> = {
  query: 'ProgrammingError',
  failed: 'DatabaseError',
};

export class QueryDesk implements Disposable {
  readonly #options: QueryDeskOptions;
  readonly #results = new Map<number, OpenResult>();
  #nextResult = 1;
  #closed = false;

  constructor(options: QueryDeskOptions) {
    this.#options = options;
  }

  /** Answers JSON text with the call's id; never rejects. */
  async call(id: number, method: string, fields: Fields): Promise<string> {
    try {
      switch (method) {
        case 'execute':
          return await this.#execute(id, fields);
        case 'fetch':
          return await this.#fetch(id, Number(fields.cursor));
        case 'close':
          this.#drop(Number(fields.cursor));
          return JSON.stringify({ id });
        default:
          return failed(id, 'InterfaceError', 'The server knows no such call.');
      }
    } catch (error) {
      return describe(id, error);
    }
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    for (const result of [...this.#results.keys()]) this.#drop(result);
  }

  async #execute(id: number, { slug, sql, parameters }: Fields): Promise<string> {
    const { queries, reader, slugs } = this.#options;
    if (typeof slug !== 'string' || typeof sql !== 'string') {
      return failed(id, 'InterfaceError', 'A statement is text, and so is the slug of its datasource.');
    }
    const who = reader();
    if (who === undefined || !slugs().includes(slug)) return failed(id, 'InterfaceError', unlisted(slug));
    if (this.#closed || this.#results.size >= MOST_RESULTS) {
      return failed(
        id,
        'OperationalError',
        `More than ${MOST_RESULTS} results are open. Close some cursors.`,
      );
    }
    const abort = new AbortController();
    const options = { signal: abort.signal, readOnly: false };
    const batches = queries.run(who, slug, sql, parseParameters(parameters), options);
    const result: OpenResult = { batches, abort, next: batches.next() };
    const name = this.#nextResult++;
    this.#results.set(name, result);
    return this.#answer(id, name, result, true);
  }

  async #fetch(id: number, name: number): Promise<string> {
    const result = this.#results.get(name);
    if (result === undefined) return failed(id, 'InterfaceError', 'The result is closed.');
    return this.#answer(id, name, result, false);
  }

  async #answer(id: number, name: number, result: OpenResult, isFirst: boolean): Promise<string> {
    let batch: IteratorResult<RowBatch, void>;
    try {
      batch = await result.next;
    } catch (error) {
      this.#results.delete(name);
      throw error;
    }
    if (batch.done === true) {
      this.#results.delete(name);
      return JSON.stringify({ id });
    }
    result.next = result.batches.next();
    result.next.catch(() => undefined); // told with the next fetch
    const { columns, rows } = batch.value;
    const head = isFirst ? `,"columns":${JSON.stringify(columns)}` : '';
    return `{"id":${id},"cursor":${name}${head},"rows":${encodeRows(columns, rows)}}`;
  }

  #drop(name: number): void {
    const result = this.#results.get(name);
    if (result === undefined) return;
    this.#results.delete(name);
    result.abort.abort();
    void result.batches.return(undefined).catch(() => undefined); // it was told to stop: how it ends is nobody's concern
  }
}

function unlisted(slug: string): string {
  return `The notebook has no datasource ${JSON.stringify(slug)}: select it for the notebook, and have it shared with you.`;
}

function failed(id: number, kind: string, message: string): string {
  return JSON.stringify({ id, error: { kind, message } });
}

function describe(id: number, error: unknown): string {
  if (error instanceof DatasourceFailure) {
    const kind = PYTHON_ERRORS[error.category] ?? 'OperationalError';
    return failed(id, kind, error.detail ?? error.message);
  }
  if (error instanceof AppError) return failed(id, 'InterfaceError', error.message);
  return failed(id, 'DatabaseError', 'The statement failed.');
}
