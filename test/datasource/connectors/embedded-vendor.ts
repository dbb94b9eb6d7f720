/** DuckDB, SQLite and data files, as the rules of connectors need them: databases that run in this server, on files of a workspace. */
import { join } from 'node:path';
import { Engines } from '#src/datasource/embedded/engines.ts';
import { ROW_LIMIT_BYTES } from '#src/datasource/rows.ts';
import { startEngine } from '../engine-host.ts';
import type { Owner } from '../listening.ts';
import { probeFixture } from '../probe-fixture.ts';
import { cannot, type Overrides, type Rules } from './conformance.ts';

/** Returns a workspace that ends with the owner, and connections to its databases. */
export function embeddedWorkspace(owner: Owner) {
  /** How many requests wait for an answer of an engine. */
  let waiting = 0;
  const engines = new Engines((launch) => {
    const engine = startEngine(launch);
    const ask = engine.ask.bind(engine);
    engine.ask = async (request) => {
      waiting++;
      try {
        return await ask(request);
      } finally {
        waiting--;
      }
    };
    return engine;
  });
  owner.after(async () => engines[Symbol.dispose]());
  const fixture = probeFixture(owner, { engines });
  return {
    at: (name: string) => join(fixture.filesDirectory, name),
    /** Returns the function that a vendor starts with: a connection to this file or folder. */
    start: (kind: string, path: string) => (_: unknown, overrides?: Overrides) => ({
      connection: { kind, path, ...overrides },
      fixture,
      observe: () => ({ isRunning: () => waiting > 0, disconnect: () => {} }),
    }),
  };
}

const NO_ACCOUNTS = cannot('the database is a file, without accounts');
const NO_NETWORK = cannot('the database runs in this server');
const ONE_STATEMENT = 'Exactly one statement is expected. Run them one after the other.';
/** A name of a column that is cut. */
export const LONG_NAME = 'n'.repeat(20_000);

/** Returns the rules that all embedded databases have in common. `text` returns the expression for a text of so many bytes. */
export function embeddedRules(text: (bytes: number) => string) {
  return {
    wrongCredentials: NO_ACCOUNTS,
    withoutTls: NO_NETWORK,
    requiredTls: NO_NETWORK,
    unknownCertificate: NO_NETWORK,
    noResult: cannot('every statement that reads has columns, and SQLite alone writes'),
    largeRows: {
      sql: Array.from({ length: 30 }, () => `SELECT ${text(200_000)}`).join(' UNION ALL '),
      total: 30,
      most: 3,
    },
    tooLarge: {
      largest: { sql: `SELECT ${text(ROW_LIMIT_BYTES)}`, lengths: [ROW_LIMIT_BYTES] },
      beyond: `SELECT ${text(ROW_LIMIT_BYTES + 1)}`,
      category: 'row_too_large',
      staysOpen: true,
    },
    several: {
      'SELECT 1; SELECT 2': ONE_STATEMENT,
      'SELECT 1; DROP TABLE item': ONE_STATEMENT,
      "SELECT ';'; -- a\nSELECT 2": ONE_STATEMENT,
    },
    cancelledEarly: NO_NETWORK,
    endsByItself: cannot('a statement is cancelled by ending its process; engines.test.ts has the rule'),
    lost: NO_NETWORK,
    lostWhileIdle: cannot('each statement takes a process; engines.test.ts has the rule'),
  } as const satisfies Partial<Rules>;
}
