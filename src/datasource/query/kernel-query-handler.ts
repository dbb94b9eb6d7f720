/**
 * Where one kernel's questions about datasources are answered. A result is read batch by batch, when the notebook asks
 * for the next; the one behind it is fetched meanwhile. Closing the desk ends every statement of that kernel.
 *
 * What a kernel says is untrusted: whatever it asks, it gets rows of datasources that its notebook lists and its opener
 * may read, or an error.
 */
import { AppError } from '#src/core/errors.ts';
import { DatasourceFailure } from '../failure.ts';
import type { RowBatch } from '../rows.ts';
import type { Queries, Reader } from './queries.ts';
import { encodeRows, parseParameters } from './row-wire.ts';

export interface KernelQueryHandlerOptions {
  readonly queries: Queries;
  /** Who opened the session; undefined when they may use no datasource (any more). */
  readonly reader: () => Reader | undefined;
  /** The datasources that the notebook lists. */
  readonly slugs: () => readonly string[];
}

interface EncodedBatch {
  readonly columns: RowBatch['columns'];
  readonly json: Uint8Array;
}

interface OpenResult {
  readonly batches: AsyncGenerator<RowBatch>;
  readonly abort: AbortController;
  /** Encoded as soon as it is there, while the kernel reads the one before. */
  next: Promise<EncodedBatch | undefined>;
}

type Fields = Readonly<Record<string, unknown>>;
type JsonParts = readonly (string | Uint8Array)[];

const MOST_RESULTS = 32;
/** A category as PEP 249 calls it; everything else is an OperationalError. */
const PYTHON_ERRORS: Readonly<Record<string, string>> = {
  query: 'ProgrammingError',
  failed: 'DatabaseError',
  row_too_large: 'DataError',
  too_much: 'DataError',
};

export class KernelQueryHandler implements Disposable {
  readonly #options: KernelQueryHandlerOptions;
  readonly #results = new Map<number, OpenResult>();
  #closed = false;

  constructor(options: KernelQueryHandlerOptions) {
    this.#options = options;
  }

  /** Answers JSON text, in parts; never rejects. */
  async call(method: string, fields: Fields): Promise<JsonParts> {
    try {
      switch (method) {
        case 'execute':
          return await this.#execute(fields);
        case 'fetch':
          return await this.#fetch(Number(fields.cursor));
        case 'close':
          this.#drop(Number(fields.cursor));
          return ['{}'];
        default:
          return failed('InterfaceError', 'The server knows no such call.');
      }
    } catch (error) {
      return describe(error);
    }
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    for (const result of [...this.#results.keys()]) this.#drop(result);
  }

  async #execute({ cursor, slug, sql, parameters }: Fields): Promise<JsonParts> {
    const { queries, reader, slugs } = this.#options;
    if (typeof slug !== 'string' || typeof sql !== 'string') {
      return failed('InterfaceError', 'A statement is text, and so is the slug of its datasource.');
    }
    const who = reader();
    if (who === undefined || !slugs().includes(slug)) return failed('InterfaceError', unlisted(slug));
    const name = Number(cursor);
    if (!Number.isSafeInteger(name) || this.#results.has(name)) {
      return failed('InterfaceError', 'A statement is named by a number that no other one has.');
    }
    if (this.#closed || this.#results.size >= MOST_RESULTS) {
      return failed('OperationalError', `More than ${MOST_RESULTS} results are open. Close some cursors.`);
    }
    const abort = new AbortController();
    const options = { signal: abort.signal, readOnly: false };
    const batches = queries.run(who, slug, sql, parseParameters(parameters), options);
    const result: OpenResult = { batches, abort, next: encodedNext(batches) };
    this.#results.set(name, result);
    return this.#answer(name, result, true);
  }

  async #fetch(name: number): Promise<JsonParts> {
    const result = this.#results.get(name);
    if (result === undefined) return failed('InterfaceError', 'The result is closed.');
    return this.#answer(name, result, false);
  }

  async #answer(name: number, result: OpenResult, isFirst: boolean): Promise<JsonParts> {
    let batch: EncodedBatch | undefined;
    try {
      batch = await result.next;
    } catch (error) {
      this.#forget(name, result);
      throw error;
    }
    if (batch === undefined) {
      this.#forget(name, result);
      return ['{}'];
    }
    result.next = encodedNext(result.batches);
    result.next.catch(() => undefined); // told with the next fetch
    const head = isFirst ? `,"columns":${JSON.stringify(batch.columns)}` : '';
    return [`{"more":true${head},"rows":`, batch.json, '}'];
  }

  /** Its name may be another's by now. */
  #forget(name: number, result: OpenResult): void {
    if (this.#results.get(name) === result) this.#results.delete(name);
  }

  #drop(name: number): void {
    const result = this.#results.get(name);
    if (result === undefined) return;
    this.#results.delete(name);
    result.abort.abort();
    void result.batches.return(undefined).catch(() => undefined); // it was told to stop: how it ends is nobody's concern
  }
}

async function encodedNext(batches: AsyncGenerator<RowBatch>): Promise<EncodedBatch | undefined> {
  const { done, value } = await batches.next();
  return done === true ? undefined : { columns: value.columns, json: encodeRows(value) };
}

function unlisted(slug: string): string {
  return `The notebook has no datasource ${JSON.stringify(slug)}: select it for the notebook, and have it shared with you.`;
}

function failed(kind: string, message: string): JsonParts {
  return [JSON.stringify({ error: { kind, message } })];
}

function describe(error: unknown): JsonParts {
  if (error instanceof DatasourceFailure) {
    const kind = PYTHON_ERRORS[error.category] ?? 'OperationalError';
    return failed(kind, error.detail ?? error.message);
  }
  if (error instanceof AppError) return failed('InterfaceError', error.message);
  return failed('DatabaseError', 'The statement failed.');
}
