/**
 * The rules of every connector, each a test. The file of a vendor calls `conformance` with the parts that differ: how to
 * start a server, its statements, its values. A vendor to which a rule cannot apply says why.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectorOf } from '#src/datasource/connectors/connection-schema.ts';
import type { DatabaseLink } from '#src/datasource/connectors/link.ts';
import { DATASOURCE_FAILURES, type FailureCategory } from '#src/datasource/failure.ts';
import { placeParameters } from '#src/datasource/query/placeholders.ts';
import type { Parameter, ResultColumn, RowValue } from '#src/datasource/rows.ts';
import { eventually } from '#test/support/processes.ts';
import type { Owner } from '../listening.ts';
import { type Asked, ask, type ProbeFixture, type Result } from '../probe-fixture.ts';

/** Members of a connection that differ from the members of a working connection. */
export type Overrides = Readonly<Record<string, unknown>>;

/** The reason why a rule cannot apply to a vendor. */
export interface Cannot {
  readonly cannot: string;
}

/** Marks a rule that cannot apply. `because` completes the sentence "It cannot apply, because …". */
export const cannot = (because: string): Cannot => ({ cannot: because });

/** The requests that a stand-in has received. */
export interface Received {
  /** The statements that were to be run. */
  statements(): readonly string[];
  /** The parameters of the last statement, in the form of the protocol. */
  parameters(): unknown;
  /** Requests to cancel a statement. */
  cancellations(): readonly string[];
}

/** A statement in progress, seen from the database's side. */
export interface Observed {
  /** Returns whether the database works on a statement of the session. */
  isRunning(): boolean | Promise<boolean>;
  /** Ends the session's connections, in the database. */
  disconnect(): void | Promise<void>;
}

/** A database, and a connection to it. */
export interface Running {
  readonly connection: object;
  readonly fixture: ProbeFixture;
  /** Absent where the database is real. */
  readonly received?: Received;
  /** Returns how many passwords have arrived. Absent where the stand-in cannot tell. */
  passwords?(): number;
  observe(session: DatabaseLink): Observed | Promise<Observed>;
  /** Holds back the answers to statements until the signal aborts. */
  holdAnswers?(until: AbortSignal): void;
}

/** The parameters of the rule `parameters`: one of each kind, and an integer that a double cannot hold. */
const PARAMETERS: readonly Parameter[] = [
  "it's; DROP TABLE x -- \\",
  5n,
  9_007_199_254_740_993n,
  1.5,
  2,
  null,
  true,
  new Uint8Array([255, 0]),
];

/** Rows, or the parameters as a stand-in receives them. */
export type Arrived = { readonly rows: Result['rows'] } | { readonly received: unknown };

/** Starts a further server, and returns a connection to it. */
export type ConnectionTo = (owner: Owner) => Promise<object>;

type Detail = string | RegExp | undefined;

/** The parts in which vendors differ, by rule. A name of a case is a part of the test's name. */
export interface Rules {
  readonly works: Readonly<Record<string, Overrides>>;
  readonly wrongCredentials: Readonly<Record<string, Overrides>> | Cannot;
  readonly missing: Readonly<Record<string, Overrides>>;
  readonly withoutTls: Overrides | Cannot;
  /** Connections that need TLS, to servers without it. */
  readonly requiredTls: Readonly<Record<string, Overrides | ConnectionTo>> | Cannot;
  /** A connection to a server with a certificate that the connection does not trust. */
  readonly unknownCertificate: Overrides | ConnectionTo | Cannot;
  readonly values: { readonly sql: string; readonly columns: string; readonly rows: Result['rows'] };
  readonly noRows: { readonly sql: string; readonly columns: readonly ResultColumn[] };
  readonly noResult: string | Cannot;
  /** `most` is the number of rows of the largest batch. */
  readonly manyRows: {
    readonly sql: string;
    readonly total: number;
    readonly last: readonly RowValue[];
    readonly most?: number;
  };
  /** Rows of some hundred kilobytes, and the most rows of one batch. */
  readonly largeRows: { readonly sql: string; readonly total: number; readonly most: number } | Cannot;
  /** `largest` is the longest row that is allowed, as the lengths of its cells. */
  readonly tooLarge: {
    /** Whether the session can be used after the refusal. */
    readonly staysOpen?: true;
    readonly largest?: { readonly sql: string; readonly lengths: readonly number[] };
    readonly beyond: string;
    readonly category: FailureCategory;
  };
  /** A statement whose columns have names of more than 10,000 characters. */
  readonly longNames:
    | { readonly sql: string; readonly columns: readonly Omit<ResultColumn, 'name'>[] }
    | Cannot;
  /** A statement with eight `?`, for `PARAMETERS`. */
  readonly parameters: { readonly sql: string } & Arrived;
  /** A statement with two `?`, for ∞ and -∞. */
  readonly infinity: ({ readonly sql: string } & Arrived) | { readonly sql: string; readonly detail: string };
  /** Statements that write, with the server's message if they are not even sent. */
  readonly writes: Readonly<Record<string, Detail>>;
  readonly message: { readonly sql: string; readonly detail: Detail };
  readonly several: Readonly<Record<string, Detail>> | Cannot;
  /** A statement that gives rows and does not end. */
  readonly abandoned: string;
  /** A statement that gives no rows and does not end. */
  readonly cancelled: string;
  /** A statement that does not end, whose acceptance the stand-in can hold back. */
  readonly cancelledEarly: string | Cannot;
  /** A statement that ends by itself, and a statement that fails. */
  readonly endsByItself: readonly [string, string] | Cannot;
  /** A statement that gives some rows and then is cut off. */
  readonly lost: string | Cannot;
  readonly lostWhileIdle: true | Cannot;
  readonly changed:
    | {
        readonly before?: readonly string[];
        readonly sql: string;
        readonly count: number;
        readonly after?: readonly string[];
      }
    | Cannot;
}

/** A kind of database in the tests. */
export interface Vendor {
  /** The kind of its connector. The names of its tests begin with it. */
  readonly kind: string;
  /** Why the tests cannot run here. */
  readonly skip?: string | false;
  /** Starts a server, or finds the running one. It ends with the owner. */
  start(owner: Owner, overrides?: Overrides): Promise<Running> | Running;
  /** The form of the cancellations that a stand-in receives. */
  readonly cancellation?: RegExp;
  /** The failure of a test of a connection whose database or schema does not exist. */
  readonly missing?: FailureCategory;
  readonly rules: Rules;
}

/** Makes the tests of all rules for a vendor. */
export function conformance(vendor: Vendor): void {
  for (const [name, given] of Object.entries(vendor.rules)) {
    if (isCannot(given)) continue;
    const cases: Cases = Reflect.get(RULES, name)(given, vendor);
    for (const [sentence, body] of Object.entries(cases))
      test(`${vendor.kind}: ${sentence}`, { skip: vendor.skip ?? false }, (t) => body(t));
  }
}

/** Returns the columns of a text such as `id:integer name:text:byCell`. */
function columnsOf(text: string): ResultColumn[] {
  return text.split(' ').map((one) => {
    const [name = '', type, byCell] = one.split(':');
    return { name, type: type as ResultColumn['type'], ...(byCell !== undefined && { byCell: true }) };
  });
}

type Cases = Readonly<Record<string, (owner: Owner) => Promise<void>>>;
type Applied<Name extends keyof Rules> = Exclude<Rules[Name], Cannot>;

function isCannot(given: unknown): given is Cannot {
  return typeof given === 'object' && given !== null && 'cannot' in given;
}

/** Makes a case for each entry. */
function casesOf<T>(
  entries: Readonly<Record<string, T>>,
  sentence: (name: string) => string,
  body: (owner: Owner, entry: T, name: string) => Promise<void>,
): Cases {
  return Object.fromEntries(
    Object.entries(entries).map(([name, entry]) => [
      sentence(name),
      (owner: Owner) => body(owner, entry, name),
    ]),
  );
}

async function opened(owner: Owner, vendor: Vendor) {
  const running = await vendor.start(owner);
  return { ...running, session: await running.fixture.open(running.connection) };
}

/** Checks that another statement can use the session. */
async function assertUsable(session: DatabaseLink): Promise<void> {
  assert.deepEqual((await ask(session, 'SELECT 1')).rows, [[1]]);
}

/** Checks that a stand-in has received one cancellation, in the form of the vendor's protocol. */
function assertCancelled(received: Received | undefined, { cancellation }: Vendor): void {
  if (received === undefined) return;
  assert.equal(received.cancellations().length, 1);
  assert.match(String(received.cancellations()), cancellation ?? /./);
}

async function assertProbe(
  owner: Owner,
  vendor: Vendor,
  given: Overrides | ConnectionTo,
  category?: FailureCategory,
): Promise<Running> {
  const running = await vendor.start(owner, typeof given === 'function' ? {} : given);
  const connection = typeof given === 'function' ? await given(owner) : running.connection;
  const expected =
    category === undefined
      ? { ok: true, message: 'The connection works.' }
      : { ok: false, message: DATASOURCE_FAILURES[category] };
  assert.deepEqual(await running.fixture.probe(connection), expected);
  return running;
}

/** Returns the statement with the placeholders of the vendor, as `cursor.execute` of notebooks makes it. */
function placed(kind: string, sql: string, parameters: readonly Parameter[]): string {
  const { placeholder, syntax } = connectorOf(kind);
  return placeParameters(syntax, sql, (position) => placeholder(position, parameters[position - 1] ?? null))
    .sql;
}

async function assertArrived(
  { session, received }: { readonly session: DatabaseLink; readonly received?: Received },
  sql: string,
  parameters: readonly Parameter[],
  arrived: Arrived,
): Promise<void> {
  const { rows } = await ask(session, sql, { parameters });
  if ('rows' in arrived) assert.deepEqual(rows, arrived.rows);
  else assert.deepEqual(received?.parameters(), arrived.received);
}

/** Reads a statement batch by batch. Returns the number of rows in each. */
async function batchSizes(session: DatabaseLink, sql: string): Promise<number[]> {
  const sizes: number[] = [];
  const options = { signal: new AbortController().signal, readOnly: true };
  for await (const batch of session.query(sql, [], options)) sizes.push(batch.rows.length);
  return sizes;
}

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, one) => sum + one, 0);

const RULES: { readonly [Name in keyof Rules]: (given: Applied<Name>, vendor: Vendor) => Cases } = {
  works: (given, vendor) =>
    casesOf(
      given,
      (name) => `a connection ${name} works`,
      async (t, overrides) => void (await assertProbe(t, vendor, overrides)),
    ),

  wrongCredentials: (given, vendor) =>
    casesOf(
      given,
      (name) => `${name} is rejected`,
      async (t, overrides) => void (await assertProbe(t, vendor, overrides, 'authentication')),
    ),

  missing: (given, vendor) =>
    casesOf(
      given,
      (name) => `a missing ${name} is reported`,
      async (t, overrides) =>
        void (await assertProbe(t, vendor, overrides, vendor.missing ?? 'database_missing')),
    ),

  withoutTls: (overrides, vendor) => ({
    'a connection works without TLS if it disables TLS': async (t) =>
      void (await assertProbe(t, vendor, overrides)),
  }),

  requiredTls: (given, vendor) =>
    casesOf(
      given,
      (name) => `with ${name}, TLS that the server lacks is not given up`,
      async (t, connection) => {
        const { passwords } = await assertProbe(t, vendor, connection, 'tls');
        assert.equal(passwords?.() ?? 0, 0);
      },
    ),

  unknownCertificate: (connection, vendor) => ({
    'a certificate that is not trusted is rejected': async (t) =>
      void (await assertProbe(t, vendor, connection, 'tls')),
  }),

  values: ({ sql, columns, rows }, vendor) => ({
    'values of every common type are returned unchanged': async (t) => {
      const { session } = await opened(t, vendor);
      assert.deepEqual(await ask(session, sql), { columns: columnsOf(columns), rows });
    },
  }),

  noRows: ({ sql, columns }, vendor) => ({
    'a SELECT without rows still has columns': async (t) => {
      const { session } = await opened(t, vendor);
      assert.deepEqual(await ask(session, sql), { columns, rows: [] });
    },
  }),

  noResult: (sql, vendor) => ({
    'a statement that returns nothing has no columns': async (t) => {
      const { session } = await opened(t, vendor);
      assert.deepEqual(await ask(session, sql, { readOnly: false }), { columns: [], rows: [] });
    },
  }),

  manyRows: ({ sql, total, last, most = total - 1 }, vendor) => ({
    'many rows come in batches, and never more than requested': async (t) => {
      const { session } = await opened(t, vendor);
      const sizes = await batchSizes(session, sql);
      assert.equal(sumOf(sizes), total);
      assert(Math.max(...sizes) <= most, String(sizes));
      const { rows } = await ask(session, sql);
      assert.deepEqual([rows.length, rows.at(-1)], [total, last]);
      assert.equal((await ask(session, sql, { maxRows: 1500 })).rows.length, 1500);
      await assertUsable(session);
    },
  }),

  largeRows: ({ sql, total, most }, vendor) => ({
    'large rows come in batches of a bounded size': async (t) => {
      const { session } = await opened(t, vendor);
      const sizes = await batchSizes(session, sql);
      assert.equal(sumOf(sizes), total);
      assert(Math.max(...sizes) <= most, String(sizes));
    },
  }),

  tooLarge: ({ largest, beyond, category, staysOpen }, vendor) => ({
    'a result beyond the limit is refused, and one as large as the limit is returned': async (t) => {
      const { fixture, connection, session } = await opened(t, vendor);
      if (largest !== undefined) {
        const { rows } = await ask(session, largest.sql);
        assert.deepEqual(
          rows.map((row) => row.map((cell) => String(cell).length)),
          [largest.lengths],
        );
      }
      const message = DATASOURCE_FAILURES[category];
      const other = await fixture.open(connection);
      await assert.rejects(ask(other, beyond), { category, message });
      await assertUsable(staysOpen ? other : await fixture.open(connection));
    },
  }),

  longNames: ({ sql, columns }, vendor) => ({
    'long names of columns are cut, and long names of types take time in proportion to their length': async (
      t,
    ) => {
      const { session } = await opened(t, vendor);
      const found = (await ask(session, sql)).columns.map(({ name, ...rest }) => ({
        ...rest,
        length: name.length,
      }));
      assert.deepEqual(
        found,
        columns.map((column) => ({ ...column, length: 10_000 })),
      );
    },
  }),

  parameters: ({ sql, ...arrived }, vendor) => ({
    'parameters of every kind reach the database apart from the statement': async (t) => {
      await assertArrived(await opened(t, vendor), placed(vendor.kind, sql, PARAMETERS), PARAMETERS, arrived);
    },
  }),

  infinity: ({ sql, ...given }, vendor) => ({
    'an infinite parameter arrives, or is refused with its reason': async (t) => {
      const running = await opened(t, vendor);
      const parameters = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
      const statement = placed(vendor.kind, sql, parameters);
      if ('rows' in given || 'received' in given) await assertArrived(running, statement, parameters, given);
      else await assertRefused(running.session, statement, given.detail, { readOnly: true, parameters });
      await assertUsable(running.session);
    },
  }),

  writes: (given, vendor) =>
    casesOf(
      given,
      (sql) => `in read-only mode this statement is refused: ${sql}`,
      async (t, detail, sql) => {
        const { session, received } = await opened(t, vendor);
        await assertRefused(session, sql, detail, { readOnly: true });
        if (detail !== undefined) assert.deepEqual(received?.statements() ?? [], []);
        await assertUsable(session);
      },
    ),

  message: ({ sql, detail }, vendor) => ({
    "the database's error message for a statement is passed on, without secrets": async (t) => {
      const { session } = await opened(t, vendor);
      await assertRefused(session, sql, detail, { readOnly: false });
      await assertUsable(session);
    },
  }),

  several: (given, vendor) =>
    casesOf(
      given,
      (sql) => `several statements are refused: ${sql}`,
      async (t, detail, sql) => {
        const { session } = await opened(t, vendor);
        for (const readOnly of [true, false]) await assertRefused(session, sql, detail, { readOnly });
        await assertUsable(session);
      },
    ),

  abandoned: (sql, vendor) => ({
    'a statement that is abandoned early ends, and the session can be used again': async (t) => {
      const { session, observe } = await opened(t, vendor);
      const { isRunning } = await observe(session);
      const options = { signal: new AbortController().signal, readOnly: true };
      for await (const _ of session.query(sql, [], options)) break;
      await eventually('the statement has ended', async () => !(await isRunning()));
      await assertUsable(session);
    },
  }),

  cancelled: (sql, vendor) =>
    casesOf(
      { notebooks: false, agents: true },
      (who) => `a cancelled query ends in the database, and the session can be used again, for ${who}`,
      async (t, readOnly) => {
        const { session, observe, received } = await opened(t, vendor);
        const { isRunning } = await observe(session);
        const stop = new AbortController();
        const asked = ask(session, sql, { signal: stop.signal, readOnly });
        asked.catch(() => {}); // it is awaited below
        await eventually('the statement runs', isRunning);
        stop.abort();
        await assert.rejects(asked, { category: 'cancelled' });
        await eventually('the statement has ended', async () => !(await isRunning()));
        assertCancelled(received, vendor);
        await assertUsable(session);
      },
    ),

  cancelledEarly: (sql, vendor) => ({
    'a statement that is accepted only after its cancellation is cancelled in the database as well': async (
      t,
    ) => {
      const { session, received, holdAnswers } = await opened(t, vendor);
      const stop = new AbortController();
      holdAnswers?.(stop.signal);
      const asked = ask(session, sql, { signal: stop.signal, readOnly: false });
      asked.catch(() => {}); // it is awaited below
      await eventually('the statement has arrived', () => received?.statements().length === 1);
      stop.abort();
      await assert.rejects(asked, { category: 'cancelled' });
      assertCancelled(received, vendor);
    },
  }),

  endsByItself: ([one, failing], vendor) => ({
    'a query that ends by itself is not cancelled': async (t) => {
      const { session, received } = await opened(t, vendor);
      await ask(session, one);
      await assert.rejects(ask(session, failing));
      assert.deepEqual(received?.cancellations(), []);
    },
  }),

  lost: (sql, vendor) => ({
    'a connection that is lost between rows ends the statement': async (t) => {
      const { session, observe } = await opened(t, vendor);
      const { disconnect } = await observe(session);
      const options = { signal: new AbortController().signal, readOnly: true };
      const reading = async () => {
        for await (const _ of session.query(sql, [], options)) await disconnect();
      };
      await assert.rejects(reading(), isOurs);
      await session.close();
    },
  }),

  lostWhileIdle: (_, vendor) => ({
    'a session that the database ends reports the failure, and can be closed': async (t) => {
      const { session, observe } = await opened(t, vendor);
      const { disconnect } = await observe(session);
      await disconnect();
      await assert.rejects(ask(session, 'SELECT 1'), isOurs);
      await session.close();
    },
  }),

  changed: ({ before = [], sql, count, after = [] }, vendor) => ({
    'the number of changed rows is passed on, and a query has none': async (t) => {
      const { session } = await opened(t, vendor);
      const counts: number[] = [];
      const onChanged = (rows: number) => counts.push(rows);
      for (const one of before) await ask(session, one, { readOnly: false });
      await ask(session, sql, { readOnly: false, onChanged });
      await ask(session, 'SELECT 1', { onChanged });
      for (const one of after) await ask(session, one, { readOnly: false });
      assert.deepEqual(counts, [count]);
    },
  }),
};

/** Checks that an error is a `DatasourceFailure` that keeps nothing of the driver's error. */
function isOurs(error: Error): boolean {
  assert.deepEqual([error.name, error.cause], ['DatasourceFailure', undefined]);
  return true;
}

async function assertRefused(
  session: DatabaseLink,
  sql: string,
  detail: Detail,
  options: Asked,
): Promise<void> {
  await assert.rejects(ask(session, sql, options), {
    name: 'DatasourceFailure',
    category: 'query',
    message: DATASOURCE_FAILURES.query,
    ...(detail !== undefined && { detail }),
  });
}
