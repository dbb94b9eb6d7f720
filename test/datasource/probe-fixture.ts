/** Connects as a server on loopback does, with a directory of workspace files that is removed after the test. */
import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ConnectionSettings,
  connectorOf,
  parseConnection,
} from '#src/datasource/connectors/connection-schema.ts';
import { installedDrivers } from '#src/datasource/connectors/drivers.ts';
import type { DatabaseLink } from '#src/datasource/connectors/link.ts';
import { createEgress } from '#src/datasource/egress/egress.ts';
import { Engines } from '#src/datasource/embedded/engines.ts';
import { type ProbeContext, probeConnection } from '#src/datasource/probe.ts';
import type { Parameter, QueryOptions, ResultColumn, RowValue } from '#src/datasource/rows.ts';
import { startEngine } from './engine-host.ts';
import type { Owner } from './listening.ts';

/** A port that the gateway regards as one of the server's own. */
export const OWN_PORT = 1;

/** Probes and sessions for tests. */
export interface ProbeFixture {
  readonly filesDirectory: string;
  readonly context: ProbeContext;
  /** Tests a connection and checks that the reported time is plausible. */
  probe(connection: object, deadlineMs?: number): Promise<{ ok: boolean; message: string }>;
  /** Tests a connection and returns the codes of its warnings. */
  warnings(connection: object): Promise<string[]>;
  /** Opens a session, which is closed when the test ends. */
  open(connection: object): Promise<DatabaseLink>;
}

/** Returns a fixture that ends with the owner. */
export function probeFixture(owner: Owner, overrides: Partial<ProbeContext> = {}): ProbeFixture {
  const filesDirectory = realpathSync(mkdtempSync(join(tmpdir(), 'troupe-files-')));
  owner.after(async () => rmSync(filesDirectory, { recursive: true }));
  const egress = createEgress({ listenHost: '127.0.0.1', ownPorts: () => [OWN_PORT], allow: undefined });
  const engines = new Engines(startEngine);
  owner.after(async () => engines[Symbol.dispose]());
  const context = {
    egress,
    filesDirectory: () => filesDirectory,
    drivers: installedDrivers,
    engines,
    ...overrides,
  };
  return {
    filesDirectory,
    context,
    async probe(connection, deadlineMs) {
      const limit = deadlineMs === undefined ? {} : { deadlineMs };
      const {
        elapsedMs,
        warnings: _,
        ...result
      } = await probeConnection(parseConnection(connection), {
        ...context,
        ...limit,
      });
      if (!(elapsedMs >= 0)) throw new Error(`A probe took ${elapsedMs} ms.`);
      return result;
    },
    async warnings(connection) {
      const { warnings = [] } = await probeConnection(parseConnection(connection), context);
      return warnings.map(({ code }) => code);
    },
    async open(connection) {
      const parsed: ConnectionSettings = parseConnection(connection);
      const session = await connectorOf(parsed.kind).open(parsed, context, AbortSignal.timeout(10_000));
      owner.after(() => session.close());
      return session;
    },
  };
}

/** Everything that a statement returned. */
export interface Result {
  readonly columns: readonly ResultColumn[];
  readonly rows: readonly (readonly RowValue[])[];
}

/** Options of a statement. */
export interface Asked extends Partial<QueryOptions> {
  readonly parameters?: readonly Parameter[];
}

/** Runs a statement, read-only unless the options say otherwise, and returns all its rows. */
export async function ask(
  session: DatabaseLink,
  sql: string,
  { parameters = [], ...options }: Asked = {},
): Promise<Result> {
  const rows: (readonly RowValue[])[] = [];
  let columns: readonly ResultColumn[] = [];
  const signal = new AbortController().signal;
  for await (const batch of session.query(sql, parameters, { signal, readOnly: true, ...options })) {
    columns = batch.columns;
    rows.push(...batch.rows);
  }
  return { columns, rows };
}

/**
 * Sends a statement, cancels it once `isSent` holds, and resolves when the session has reported the
 * cancellation.
 */
export async function askAndCancel(
  session: DatabaseLink,
  sql: string,
  isSent: () => boolean,
  options: Asked = {},
): Promise<void> {
  const stop = new AbortController();
  const asked = ask(session, sql, { ...options, signal: stop.signal });
  while (!isSent()) await new Promise(setImmediate);
  stop.abort();
  await assert.rejects(asked, { category: 'cancelled' });
}
