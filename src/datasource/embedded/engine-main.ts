/** The process of an embedded database: opens one, then runs one statement after another. */
import { DatasourceFailure } from '../failure.ts';
import {
  type Engine,
  type EngineReply,
  isRequest,
  type RunningQuery,
  StatementError,
} from './engine-messages.ts';
import { watchParent } from './parent-watch.ts';

watchParent();
let engine: Engine | undefined;
let running: RunningQuery | undefined;

process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.on('message', (message: unknown) => void reply(message));

async function reply(message: unknown): Promise<void> {
  process.send?.(await answer(message).catch(failedBy));
}

async function answer(message: unknown): Promise<EngineReply> {
  if (!isRequest(message)) throw new DatasourceFailure('failed');
  switch (message.type) {
    case 'prepare':
      await (message.library === 'sqlite' ? import('./sqlite-engine.ts') : import('./duckdb-engine.ts'));
      return { type: 'prepared' };
    case 'open':
      engine = await openEngine(message);
      return { type: 'opened' };
    case 'query':
      if (engine === undefined) throw new DatasourceFailure('failed');
      running = await engine.query(message.sql, message.parameters);
      return { type: 'columns', columns: running.columns };
    case 'next':
      return { type: 'rows', rows: (await running?.next()) ?? [] };
  }
}

async function openEngine(
  request: Parameters<typeof import('./duckdb-engine.ts').openDuckdb>[0],
): Promise<Engine> {
  // Each engine is a native library; only the one that is needed is loaded.
  if (request.kind === 'sqlite') return (await import('./sqlite-engine.ts')).openSqlite(request);
  return (await import('./duckdb-engine.ts')).openDuckdb(request);
}

function failedBy(error: unknown): EngineReply {
  if (error instanceof StatementError) return { type: 'failed', category: 'query', detail: error.message };
  const category = error instanceof DatasourceFailure ? error.category : 'failed';
  return { type: 'failed', category, detail: null };
}
