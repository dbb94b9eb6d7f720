/**
 * Connection tests. A test ends within a deadline, with one of a few fixed sentences, however the database behaves.
 */
import { anySignal } from '#src/base/async/any-signal.ts';
import type { ConnectionTest, DatasourceWarning } from '#src/contract/wire/datasource.ts';
import type { ConnectionSettings } from './connectors/connection-schema.ts';
import { connectorOf } from './connectors/connection-schema.ts';
import type { ConnectorContext, DatabaseLink } from './connectors/link.ts';
import { DATASOURCE_FAILURES, DatasourceFailure } from './failure.ts';

/** The dependencies of a connection test. */
export interface ProbeContext extends Omit<ConnectorContext, 'limitBytes'> {
  /** Milliseconds for the whole test; 10 seconds when unset. */
  readonly deadlineMs?: number;
}

const DEADLINE_MS = 10_000;
const MAX_RECEIVED_BYTES = 4 * 1024 * 1024;
const WORKS = 'The connection works.';
/**
 * The time limit for finding out the account's write permissions, so that a test is never much
 * slower.
 */
const RIGHTS_DEADLINE_MS = 3_000;

const NO_MODE =
  'Databases of this kind have no read-only mode, so only the words of a statement decide whether an agent may run it.';
const MAY_WRITE: DatasourceWarning = {
  code: 'account_may_write',
  message: `The account of this connection may change the database. ${NO_MODE} Use an account that can only read.`,
};
const RIGHTS_UNKNOWN: DatasourceWarning = {
  code: 'account_rights_unknown',
  message: `The account of this connection may be able to change data. ${NO_MODE} Use an account that can only read.`,
};

/** Returns the warnings of a connection that was not tested. */
export function untestedWarnings(kind: string): readonly DatasourceWarning[] {
  return connectorOf(kind).readsByWords ? [RIGHTS_UNKNOWN] : [];
}

/**
 * Opens the connection, runs a small query and closes it. A failure of the database is a result,
 * and does not reject.
 */
export async function probeConnection(
  connection: ConnectionSettings,
  { deadlineMs = DEADLINE_MS, ...context }: ProbeContext,
): Promise<ConnectionTest> {
  const startedAt = performance.now();
  const signal = AbortSignal.timeout(deadlineMs);
  const found = await attempt(connection, { ...context, limitBytes: MAX_RECEIVED_BYTES }, signal);
  const { message, warnings } = found;
  const elapsedMs = Math.round(performance.now() - startedAt);
  return { ok: message === WORKS, message, elapsedMs, ...(warnings.length > 0 && { warnings }) };
}

async function attempt(
  connection: ConnectionSettings,
  context: ConnectorContext,
  signal: AbortSignal,
): Promise<Pick<ConnectionTest, 'message'> & { readonly warnings: readonly DatasourceWarning[] }> {
  let link: DatabaseLink | undefined;
  try {
    const connector = connectorOf(connection.kind);
    link = await connector.open(connection, context, signal);
    await link.probe(signal);
    return { message: WORKS, warnings: connector.readsByWords ? await rightsOf(link, signal) : [] };
  } catch (error) {
    return {
      message: error instanceof DatasourceFailure ? error.message : DATASOURCE_FAILURES.failed,
      warnings: [],
    };
  } finally {
    await link?.close();
  }
}

/** Resolves with warnings about the account's rights. A failure here does not affect the test: the connection works. */
async function rightsOf(link: DatabaseLink, signal: AbortSignal): Promise<readonly DatasourceWarning[]> {
  const deadline = anySignal(signal, AbortSignal.timeout(RIGHTS_DEADLINE_MS));
  const mayWrite = await link.mayWrite?.(deadline).catch(() => undefined);
  if (mayWrite === undefined) return [RIGHTS_UNKNOWN];
  return mayWrite ? [MAY_WRITE] : [];
}
