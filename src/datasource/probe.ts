/** Connection tests: they end within a deadline, with one fixed sentence, whatever the database does. */
import type { Connection } from './connectors/connection-schema.ts';
import { connectorOf } from './connectors/connection-schema.ts';
import type { ConnectorContext, Session } from './connectors/session.ts';
import { DatasourceFailure, FAILURES } from './failure.ts';

/** The outcome of a connection test, as the API returns it. */
export interface ProbeResult {
  readonly ok: boolean;
  /** The sentence of the failure's category: it holds nothing of the connection and nothing of the driver. */
  readonly message: string;
  readonly elapsedMs: number;
}

/** What a connection test needs. */
export interface ProbeContext extends Omit<ConnectorContext, 'limitBytes'> {
  /** Milliseconds for the whole test; 10 seconds when unset. */
  readonly deadlineMs?: number;
}

const DEADLINE_MS = 10_000;
const MAX_RECEIVED_BYTES = 4 * 1024 * 1024;
const WORKS = 'The connection works.';

/** Opens the connection, runs a small query and closes it. Rejects for no failure of the database. */
export async function probeConnection(
  connection: Connection,
  { deadlineMs = DEADLINE_MS, ...context }: ProbeContext,
): Promise<ProbeResult> {
  const startedAt = performance.now();
  const signal = AbortSignal.timeout(deadlineMs);
  const message = await attempt(connection, { ...context, limitBytes: MAX_RECEIVED_BYTES }, signal);
  return { ok: message === WORKS, message, elapsedMs: Math.round(performance.now() - startedAt) };
}

async function attempt(
  connection: Connection,
  context: ConnectorContext,
  signal: AbortSignal,
): Promise<string> {
  let session: Session | undefined;
  try {
    session = await connectorOf(connection.kind).open(connection, context, signal);
    await session.probe(signal);
    return WORKS;
  } catch (error) {
    return error instanceof DatasourceFailure ? error.message : FAILURES.failed;
  } finally {
    await session?.close();
  }
}
