/**
 * Runs the statements that one kernel sends. The kernel reads a result batch by batch; the next batch is fetched while the kernel
 * reads the current one. Disposing of the handler cancels every statement of that kernel.
 *
 * A kernel is not trusted. For any input, it receives only an error, or rows of datasources that its notebook lists.
 * The member who opened the session must be allowed to read them.
 */

import { unawaited } from '#src/base/async/unawaited.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { shortenText } from '#src/base/text/compact-text.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import type { QueryOrigin } from '#src/people/audit/query-audit.ts';
import { DatasourceFailure } from '../failure.ts';
import type { RowBatch } from '../rows.ts';
import type { Queries, Reader } from './queries.ts';
import { type AnswerParts, type BatchForm, encodeBatch, parseParameters } from './row-wire.ts';

/** The session's part in a handler. */
export interface KernelQueryHandlerOptions {
  readonly queries: Queries;
  /** The notebook session, for the audit. */
  readonly origin: QueryOrigin;
  /** Returns the member who opened the session; `undefined` when they may no longer use datasources. */
  readonly reader: () => Omit<Reader, 'origin'> | undefined;
  /** Returns the slugs of the datasources that the notebook lists. */
  readonly slugs: () => readonly string[];
  /** The kernel's share: the processes of embedded databases that it queries count towards its limit of memory. */
  readonly memoryShare?: string;
  /** Returns the trace that the statement belongs to. */
  readonly trace?: () => TraceContext | undefined;
}

interface EncodedBatch {
  readonly batch: RowBatch;
  readonly form: BatchForm;
  readonly answer: AnswerParts;
}

interface OpenResult {
  readonly batches: AsyncGenerator<RowBatch>;
  readonly abort: AbortController;
  /** The next batch. It is fetched and encoded while the kernel reads the current one. */
  next: Promise<EncodedBatch | undefined>;
  /** The form that the kernel asked for last. */
  form: BatchForm;
  /** The first batch, until the kernel asks for the next one. A kernel learns with it that it can have columns. */
  first?: RowBatch;
  /**
   * The number of rows that the statement has changed, once it has ended and the database has
   * reported it.
   */
  changed?: number;
}

type Fields = Readonly<Record<string, unknown>>;

const MAX_OPEN_RESULTS = 32;
/** The longest message of an error: it may repeat words of the kernel or of a database. */
const MAX_MESSAGE_CHARS = 4096;
/** How much of a datasource's slug an error repeats. No slug is as long. */
const MAX_NAMED_CHARS = 200;
/** The exception of PEP 249 for a category of failure; `OperationalError` for all others. */
const PYTHON_ERRORS: Readonly<Record<string, string>> = {
  query: 'ProgrammingError',
  failed: 'DatabaseError',
  row_too_large: 'DataError',
  too_much: 'DataError',
};

/** Answers the calls of one kernel. Owns its open results. */
export class KernelQueryHandler implements Disposable {
  readonly #options: KernelQueryHandlerOptions;
  readonly #results = new Map<number, OpenResult>();
  #closed = false;

  constructor(options: KernelQueryHandlerOptions) {
    this.#options = options;
  }

  /** Returns the parts of an answer (row-wire.ts). Never rejects: failures are answers with `error`. */
  async call(method: string, fields: Fields): Promise<AnswerParts> {
    try {
      switch (method) {
        case 'execute':
          return await this.#execute(fields);
        case 'fetch':
          return await this.#fetch(Number(fields.cursor), fields.form === 'columns' ? 'columns' : 'rows');
        case 'describe':
          return this.#describe(fields);
        case 'close':
          this.#drop(Number(fields.cursor));
          return ['{}'];
        default:
          return failed(
            'InterfaceError',
            'The server does not know this call. Use execute, fetch, describe or close.',
          );
      }
    } catch (error) {
      return describe(error);
    }
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    for (const result of [...this.#results.keys()]) this.#drop(result);
  }

  /** Answers with the kind of a datasource. The syntax of CREATE TABLE depends on it. */
  #describe({ slug }: Fields): AnswerParts {
    const who = typeof slug === 'string' ? this.#readerOf(slug) : undefined;
    if (typeof slug !== 'string' || who === undefined)
      return failed('InterfaceError', unusableDatasource(String(slug)));
    return [JSON.stringify({ kind: this.#options.queries.kindOf(who, slug) })];
  }

  /**
   * Returns the reader of the datasource; undefined when the notebook does not list the datasource
   * or the reader may no longer read it.
   */
  #readerOf(slug: string): Omit<Reader, 'origin'> | undefined {
    return this.#options.slugs().includes(slug) ? this.#options.reader() : undefined;
  }

  async #execute({ cursor, slug, sql, parameters }: Fields): Promise<AnswerParts> {
    const { queries, origin, trace, memoryShare } = this.#options;
    if (typeof slug !== 'string' || typeof sql !== 'string') {
      return failed('InterfaceError', 'The statement and the slug of its datasource must be text.');
    }
    const who = this.#readerOf(slug);
    if (who === undefined) return failed('InterfaceError', unusableDatasource(slug));
    const name = Number(cursor);
    if (!Number.isSafeInteger(name) || this.#results.has(name)) {
      return failed('InterfaceError', 'The number of the cursor is already used by another open result.');
    }
    if (this.#closed || this.#results.size >= MAX_OPEN_RESULTS) {
      return failed(
        'OperationalError',
        `${MAX_OPEN_RESULTS} results are already open. Close some cursors first.`,
      );
    }
    const abort = new AbortController();
    const options = {
      signal: abort.signal,
      readOnly: false,
      ...(memoryShare !== undefined && { memoryShare }),
      onChanged: (rows: number) => {
        result.changed = rows;
      },
    };
    const batches = queries.run(
      { ...who, origin, trace: trace?.() },
      slug,
      sql,
      parseParameters(parameters),
      options,
    );
    const result: OpenResult = { batches, abort, next: encodedNext(batches, 'rows', true), form: 'rows' };
    this.#results.set(name, result);
    return this.#answer(name, result, true);
  }

  /** Answers with the next batch. A kernel that begins to ask for columns gets the first batch again, as columns. */
  async #fetch(name: number, form: BatchForm): Promise<AnswerParts> {
    const result = this.#results.get(name);
    if (result === undefined) return failed('InterfaceError', 'The result is closed.');
    const { first } = result;
    delete result.first;
    result.form = form;
    if (first !== undefined && form === 'columns') return encodeBatch(first, form, false);
    return this.#answer(name, result, false);
  }

  async #answer(name: number, result: OpenResult, isFirst: boolean): Promise<AnswerParts> {
    let encoded: EncodedBatch | undefined;
    try {
      encoded = await result.next;
    } catch (error) {
      this.#forget(name, result);
      throw error;
    }
    if (encoded === undefined) {
      this.#forget(name, result);
      return [JSON.stringify({ changed: result.changed })];
    }
    const { batch, form, answer } = encoded;
    if (isFirst && batch.packed !== undefined) result.first = batch;
    result.next = encodedNext(result.batches, result.form, false);
    result.next.catch(() => undefined); // the next fetch reports it
    return form === result.form ? answer : encodeBatch(batch, result.form, isFirst);
  }

  /** Forgets a result, unless another one has taken its number. */
  #forget(name: number, result: OpenResult): void {
    if (this.#results.get(name) === result) this.#results.delete(name);
  }

  #drop(name: number): void {
    const result = this.#results.get(name);
    if (result === undefined) return;
    this.#results.delete(name);
    result.abort.abort();
    unawaited(
      result.batches.return(undefined).catch(() => undefined),
      'kernel-query-handler: the end of an aborted statement',
    ); // the statement was aborted, so its result does not matter
  }
}

async function encodedNext(
  batches: AsyncGenerator<RowBatch>,
  form: BatchForm,
  isFirst: boolean,
): Promise<EncodedBatch | undefined> {
  const { done, value: batch } = await batches.next();
  return done === true ? undefined : { batch, form, answer: encodeBatch(batch, form, isFirst) };
}

function unusableDatasource(slug: string): string {
  return `The notebook cannot use the datasource ${JSON.stringify(shortenText(slug, MAX_NAMED_CHARS))}. Add it to the notebook's datasources, and check that it is shared with you.`;
}

function failed(kind: string, message: string): AnswerParts {
  return [JSON.stringify({ error: { kind, message: shortenText(message, MAX_MESSAGE_CHARS) } })];
}

function describe(error: unknown): AnswerParts {
  if (error instanceof DatasourceFailure) {
    const kind = PYTHON_ERRORS[error.category] ?? 'OperationalError';
    return failed(kind, error.detail ?? error.message);
  }
  if (error instanceof AppError) return failed('InterfaceError', error.message);
  return failed('DatabaseError', 'The statement failed.');
}
