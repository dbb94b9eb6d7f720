/**
 * Sessions with embedded databases. SQLite keeps its process from one query to the next, as long as the file is the same;
 * the others take a new one for each query, because DuckDB holds a lock on its file and knows only what it saw when it opened.
 * A query that is cancelled ends its process.
 */
import { statSync } from 'node:fs';
import type { Session } from '../connectors/connector.ts';
import { DatasourceFailure } from '../failure.ts';
import type { Parameter, QueryOptions, RowBatch } from '../rows.ts';
import type { EngineKind, EngineMode } from './engine-messages.ts';
import type { EngineProcess } from './engine-process.ts';
import type { Engines } from './engines.ts';
import { locate } from './workspace-path.ts';

export interface EmbeddedOptions {
  readonly kind: EngineKind;
  readonly filesDirectory: string;
  readonly path: string;
}

interface Running {
  readonly engine: EngineProcess;
  /** Of the way it was opened, and of the file. */
  readonly mark: string;
}

export function embeddedSession(options: EmbeddedOptions, engines: Engines): Session {
  const isKept = options.kind === 'sqlite';
  let current: Running | undefined;
  const end = () => {
    current?.engine[Symbol.dispose]();
    current = undefined;
  };
  const engineFor = async (mode: EngineMode, signal: AbortSignal) => {
    // The process looks again; here it is to spare one for what is not there, and to see that a file was replaced.
    const found = statSync(
      locate(options.filesDirectory, options.path, options.kind === 'files' ? 'any' : 'file'),
    );
    const mark = `${mode} ${found.dev} ${found.ino}`;
    if (isKept && current?.mark === mark && !current.engine.ended) return current.engine;
    end();
    const engine = engines.take(options.kind);
    current = { engine, mark };
    try {
      await killedOnAbort(engine, signal, () => engine.ask({ type: 'open', mode, ...options }));
    } catch (error) {
      end();
      throw error;
    }
    engines.prepare(options.kind);
    return engine;
  };
  async function* query(
    sql: string,
    parameters: readonly Parameter[],
    { signal, readOnly }: QueryOptions,
  ): AsyncGenerator<RowBatch> {
    const engine = await engineFor(readOnly ? 'read' : 'write', signal);
    const ask = (request: Parameters<EngineProcess['ask']>[0]) =>
      killedOnAbort(engine, signal, () => engine.ask(request));
    let isDone = false;
    try {
      const started = await ask({ type: 'query', sql, parameters });
      if (started.type !== 'columns') throw new DatasourceFailure('failed');
      const { columns } = started;
      if (columns === null) {
        isDone = true;
        return;
      }
      for (let batches = 0; ; batches++) {
        const answer = await ask({ type: 'next' });
        if (answer.type !== 'rows') throw new DatasourceFailure('failed');
        if (answer.rows.length > 0 || batches === 0) yield { columns, rows: answer.rows };
        isDone = answer.rows.length === 0;
        if (isDone) return;
      }
    } finally {
      // A statement that was left half read holds its locks.
      if (!isKept || !isDone) engine[Symbol.dispose]();
    }
  }
  return {
    async probe(signal) {
      await engineFor('probe', signal);
    },
    query,
    close: async () => end(),
  };
}

async function killedOnAbort<T>(
  engine: EngineProcess,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const kill = () => engine[Symbol.dispose]();
  signal.throwIfAborted();
  signal.addEventListener('abort', kill, { once: true });
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted(); // killed, rather than failed
    throw error;
  } finally {
    signal.removeEventListener('abort', kill);
  }
}
