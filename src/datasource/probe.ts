/** Connection tests: one sentence of ours about how it went, within the deadline, whatever the database does. */
import type { Connection } from './connectors/connection-schema.ts';
import { connectorOf } from './connectors/connection-schema.ts';
import type { ConnectorContext, Session } from './connectors/connector.ts';
import { DatasourceFailure, FAILURES } from './failure.ts';

export interface ProbeResult {
  readonly ok: boolean;
  /** Fixed words by category: nothing of the connection, nothing of the driver. */
  readonly message: string;
  readonly elapsedMs: number;
}

export interface ProbeContext extends Omit<ConnectorContext, 'limitBytes'> {
  /** For the whole test; 10 seconds when unset. */
  readonly deadlineMs?: number;
}

const DEADLINE_MS = 10_000;
const LIMIT_BYTES = 4 * 1024 * 1024;
const WORKS = 'The connection works.';

/** Opens the connection, asks it for something small and closes it. Never rejects for what a database does. */
export async function probeConnection(
  connection: Connection,
  { deadlineMs = DEADLINE_MS, ...context }: ProbeContext,
): Promise<ProbeResult> {
  const startedAt = performance.now();
  const signal = AbortSignal.timeout(deadlineMs);
  const message = await attempt(connection, { ...context, limitBytes: LIMIT_BYTES }, signal);
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
