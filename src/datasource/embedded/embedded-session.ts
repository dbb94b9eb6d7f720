/** Sessions with embedded databases. A process is started when it is needed; a query that is cancelled ends it. */
import type { Session } from '../connector.ts';
import { DatasourceFailure } from '../failure.ts';
import type { Parameter, QueryOptions, RowBatch } from '../rows.ts';
import type { EngineKind, EngineMode } from './engine-messages.ts';
import { EngineProcess } from './engine-process.ts';
import { locate } from './workspace-path.ts';

export interface EmbeddedOptions {
  readonly kind: EngineKind;
  readonly filesDirectory: string;
  readonly path: string;
}

export function embeddedSession(options: EmbeddedOptions): Session {
  let current: { readonly engine: EngineProcess; readonly mode: EngineMode } | undefined;
  const end = () => {
    current?.engine[Symbol.dispose]();
    current = undefined;
  };
  const engineFor = async (wanted: EngineMode, signal: AbortSignal) => {
    // Only SQLite opens its file differently for each.
    const mode = options.kind === 'sqlite' ? wanted : 'read';
    if (current?.mode === mode && !current.engine.ended) return current.engine;
    end();
    // The process looks again; here it is only to spare one for what is not there.
    locate(options.filesDirectory, options.path, options.kind === 'files' ? 'any' : 'file');
    const engine = new EngineProcess();
    current = { engine, mode };
    try {
      await killedOnAbort(engine, signal, () => engine.ask({ type: 'open', mode, ...options }));
    } catch (error) {
      end();
      throw error;
    }
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
    const started = await ask({ type: 'query', sql, parameters });
    if (started.type !== 'columns') throw new DatasourceFailure('failed');
    const { columns } = started;
    if (columns === null) return;
    for (let batches = 0; ; batches++) {
      const answer = await ask({ type: 'next' });
      if (answer.type !== 'rows') throw new DatasourceFailure('failed');
      if (answer.rows.length > 0 || batches === 0) yield { columns, rows: answer.rows };
      if (answer.rows.length === 0) return;
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
