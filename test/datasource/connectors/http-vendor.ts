/** Stand-ins of data warehouses that are reached by HTTP, as the rules of connectors need them. */
import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import { httpStandIn, type StandInAnswer, type StandInRequest } from '../http-stand-in.ts';
import type { Owner } from '../listening.ts';
import { probeFixture } from '../probe-fixture.ts';
import { cannot, type Rules, type Running } from './conformance.ts';

/** How a vendor's protocol is read. */
export interface HttpProtocol {
  /** Returns the statement that a request begins; `undefined` for any other request. */
  statementIn(request: StandInRequest): string | undefined;
  /** Returns the parameters of such a request. */
  parametersIn(request: StandInRequest): unknown;
  /** Whether the request asks about a statement that does not end. Where absent, the request that begins the statement does. */
  isPoll?(request: StandInRequest): boolean;
  isCancel(request: StandInRequest): boolean;
  answer(request: StandInRequest, port: number): StandInAnswer | undefined;
}

/** A running stand-in of a data warehouse. */
export interface RunningHttp extends Running {
  readonly requests: readonly StandInRequest[];
}

/** Starts a stand-in, which ends with the owner. `connectionTo` returns the connection to its port. */
export async function startHttp(
  owner: Owner,
  {
    statementIn,
    parametersIn,
    isPoll = (request) => statementIn(request) !== undefined,
    isCancel,
    answer,
  }: HttpProtocol,
  connectionTo: (port: number) => object,
): Promise<RunningHttp> {
  let held: AbortSignal | undefined;
  const { port, requests, disconnect } = await httpStandIn(owner, async (request, own) => {
    if (held !== undefined && !held.aborted && statementIn(request) !== undefined) await once(held, 'abort');
    return answer(request, own);
  });
  const begun = () => requests.filter((request) => statementIn(request) !== undefined);
  const received = {
    statements: () => begun().map((request) => statementIn(request) ?? ''),
    parameters: () => begun().map(parametersIn).at(-1),
    cancellations: () =>
      requests.filter(isCancel).map(({ method, path, body }) => `${method} ${path} ${body}`),
  };
  const isRunning = () => {
    const last = requests.filter((request) => isPoll(request) || isCancel(request)).at(-1);
    return last !== undefined && !isCancel(last);
  };
  return {
    connection: withoutUndefined(connectionTo(port)),
    fixture: probeFixture(owner),
    requests,
    received,
    observe: () => ({ isRunning, disconnect }),
    holdAnswers: (until) => {
      held = until;
    },
  };
}

/** An override that is undefined removes the member. */
function withoutUndefined(connection: object): object {
  return Object.fromEntries(Object.entries(connection).filter(([, value]) => value !== undefined));
}

/** Starts a server without TLS, which ends with the owner. Returns its port. */
export async function plainPort(owner: Owner): Promise<number> {
  return (await httpStandIn(owner, () => ({ body: {} }), false)).port;
}

/** A result of the stand-ins, whatever their protocol. A partial result has a next page that never comes. */
export interface StandInResult {
  readonly column: string;
  readonly type: 'integer' | 'text';
  readonly rows: readonly (readonly [number])[];
  readonly isPartial?: true;
}

/** The number of rows of `SELECT many`. */
const MANY = 2500;
/** Long names of column types. A reader whose cost grows with the square of the length would take hours for one such name. */
export const LONG_TYPES = [')', '(', 'a(', ' ', '\n(', '0', 'Nullable(', 'LowCardinality'].flatMap((unit) =>
  ['x', '\n'].map((end) => unit.repeat(1e6 / unit.length) + end),
);
/** The name of each column of `SELECT long names`. */
export const LONG_NAME = 'n'.repeat(20_000);

const RESULTS: Readonly<Record<string, StandInResult>> = {
  'SELECT 1': { column: 'one', type: 'integer', rows: [[1]] },
  'SELECT nothing': { column: 'one', type: 'integer', rows: [] },
  'SELECT many': {
    column: 'i',
    type: 'integer',
    rows: Array.from({ length: MANY }, (_, at) => [at + 1] as const),
  },
  'SELECT partly': { column: 'i', type: 'integer', rows: [[1], [2]], isPartial: true },
};

/** Returns the result of one of the statements that all stand-ins know. */
export function resultOf(sql: string): StandInResult | undefined {
  return RESULTS[sql];
}

/** An answer that becomes too large when it is unpacked. */
export function tooLargePage(): StandInAnswer {
  return { headers: { 'content-encoding': 'gzip' }, body: gzipSync(Buffer.alloc(65 * 1024 * 1024, ' ')) };
}

/** The rules that are equal for all databases that are reached by HTTP and answer in pages. */
export const HTTP_RULES = {
  unknownCertificate: { ca_certificate: undefined },
  withoutTls: cannot('the URL says whether TLS is used'),
  noRows: { sql: 'SELECT nothing', columns: [{ name: 'one', type: 'integer' }] },
  noResult: cannot('every statement has columns'),
  manyRows: { sql: 'SELECT many', total: MANY, last: [MANY], most: 1000 },
  largeRows: cannot('the server decides how large a page is, and one beyond the limit is refused'),
  tooLarge: { beyond: 'SELECT large', category: 'too_much', staysOpen: true },
  longNames: { sql: 'SELECT long names', columns: LONG_TYPES.map(() => ({ type: 'other' as const })) },
  several: cannot('the server itself takes one statement in a request'),
  abandoned: 'SELECT partly',
  cancelled: 'SELECT forever',
  cancelledEarly: 'SELECT forever',
  endsByItself: ['SELECT 1', 'SELEC'],
  lost: 'SELECT partly',
  lostWhileIdle: cannot('each request opens a connection if it has to'),
  changed: cannot('the server reports no such number'),
} as const satisfies Partial<Rules>;
