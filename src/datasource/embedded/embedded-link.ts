/**
 * Links to embedded databases. A link does not keep a process: each statement takes one,
 * and a cancelled statement ends its process.
 */

import type {
  EngineKind,
  EngineLaunch,
  EngineMode,
} from '#src/confined/processes/children/engine-process.ts';
import type { DatabaseLink } from '../connectors/link.ts';
import { DatasourceFailure, type FailureCategory } from '../failure.ts';
import type { Parameter, QueryOptions, ResultColumn, RowBatch } from '../rows.ts';
import { changedOf, checkAnswer, columnsOf, parameterFields, rowsOf } from './engine-answers.ts';
import type { EnginePort } from './engine-port.ts';
import type { Engines } from './engines.ts';
import type { PackedRows } from './packed-rows.ts';

export interface EmbeddedOptions {
  readonly kind: EngineKind;
  readonly filesDirectory: string;
  readonly path: string;
}

export function embeddedLink(options: EmbeddedOptions, engines: Engines): DatabaseLink {
  return {
    async probe(signal) {
      const launch = launchOf(options, 'probe');
      const engine = await engines.take(launch, signal);
      try {
        checkAnswer(await killedOnAbort(engine, signal, { op: 'open' }), 'opened');
      } finally {
        engines.give(launch, engine, false);
      }
    },
    query: (sql, parameters, given) => queried(options, engines, sql, parameters, given),
    close: async () => {},
  };
}

/**
 * Returns the kind of process to start. Only SQLite files are ever written, or change when they are
 * read.
 */
function launchOf(options: EmbeddedOptions, mode: EngineMode): EngineLaunch {
  return { ...options, mode: options.kind === 'sqlite' ? mode : 'read' };
}

async function* queried(
  options: EmbeddedOptions,
  engines: Engines,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly, memoryShare, onChanged }: QueryOptions,
): AsyncGenerator<RowBatch> {
  const launch = {
    ...launchOf(options, readOnly ? 'read' : 'write'),
    ...(memoryShare !== undefined && { memoryShare }),
  };
  const engine = await engines.take(launch, signal);
  const ask = (request: Readonly<Record<string, unknown>>) => killedOnAbort(engine, signal, request);
  let state: 'failed' | 'running' | 'done' = 'failed';
  try {
    const answer = await ask({ op: 'query', sql, parameters: parameterFields(parameters) });
    const columns = columnsOf(answer);
    const changed = changedOf(answer);
    if (changed !== undefined) onChanged?.(changed);
    if (columns !== null) {
      state = 'running';
      for (let batches = 0; ; batches++) {
        const packed = rowsOf(await ask({ op: 'next' }), columns);
        if (packed.count > 0 || batches === 0) yield batchOf(columns, packed);
        if (packed.count === 0) break;
      }
    }
    state = 'done';
  } catch (error) {
    // The database's refusal of a statement ends the statement, not the process.
    const isRefused = error instanceof DatasourceFailure && STATEMENT_FAILURES.has(error.category);
    state = isRefused ? 'running' : 'failed';
    throw error;
  } finally {
    // A statement that was left half read holds its locks.
    if (state === 'running') state = await ended(ask);
    engines.give(launch, engine, state === 'done');
  }
}

const STATEMENT_FAILURES: ReadonlySet<FailureCategory> = new Set(['query', 'row_too_large']);

async function ended(ask: (request: { readonly op: 'end' }) => Promise<unknown>): Promise<'done' | 'failed'> {
  try {
    checkAnswer(await ask({ op: 'end' }), 'ended');
    return 'done';
  } catch {
    return 'failed';
  }
}

function batchOf(columns: readonly ResultColumn[], packed: PackedRows): RowBatch {
  let rows: RowBatch['rows'] | undefined;
  return {
    columns,
    rowCount: packed.count,
    get rows() {
      rows ??= packed.rows();
      return rows;
    },
    json: () => packed.json(),
  };
}

async function killedOnAbort(
  engine: EnginePort,
  signal: AbortSignal,
  request: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  const kill = () => engine[Symbol.dispose]();
  if (signal.aborted) kill();
  signal.throwIfAborted();
  signal.addEventListener('abort', kill, { once: true });
  try {
    return await engine.ask(request);
  } catch (error) {
    signal.throwIfAborted(); // the process was killed, so this is not a failure
    throw error;
  } finally {
    signal.removeEventListener('abort', kill);
  }
}
