/** Links to SQL Server. */
import type { Socket } from 'node:net';
import { parseHost } from '#src/base/net/ip-address.ts';
import type { EgressRoute } from '../../egress/egress-route.ts';
import { type TlsOptions, tlsAttempts, withTls } from '../../egress/tls-mode.ts';
import { categoryOfSocketError, codeOf, DatasourceFailure, type FailureCategory } from '../../failure.ts';
import { RowQueue } from '../../query/row-queue.ts';
import { type Parameter, type QueryOptions, type RowBatch, refuseInfinite } from '../../rows.ts';
import { explainRemote, RemoteError, refuseWriting } from '../http/client.ts';
import type { DatabaseLink, Target } from '../link.ts';
import type { ServerAccount } from '../members.ts';
import { endOnUnreadable, type TdsConnection, type TdsRequest, type Tedious } from './driver.ts';
import { MAY_WRITE, mayRunReadOnly } from './statements.ts';
import { cellOf, mssqlColumn, type TdsColumn, typeFor } from './values.ts';

/** A server and an account on it. */
export interface MssqlOptions extends ServerAccount {
  readonly route: EgressRoute;
  /** Connects to another server when the named one redirects its clients there, as Azure does. */
  readonly connectTo: (target: Target) => Promise<EgressRoute>;
}

/** Opens a link with the loaded driver. Rejects with errors of the driver and of sockets. */
export async function openMssql(driver: Tedious, options: MssqlOptions): Promise<DatabaseLink> {
  const connection = await withTls(
    tlsAttempts(options.tls, options.route, options.ca_certificate),
    (tls) => connected(driver, options, tls),
    (error) => error instanceof NoTls || causeOf(error) instanceof NoTls,
  );
  const query = (sql: string, parameters: readonly Parameter[], queryOptions: QueryOptions) =>
    rowsOf({ driver, connection, route: options.route }, sql, parameters, queryOptions);
  return {
    lost: new Promise((resolve) => connection.once('end', resolve)),
    async probe(signal) {
      for await (const _ of query('SELECT 1', [], { signal, readOnly: true }));
    },
    async mayWrite(signal) {
      // This statement is written by this program and not by a user. It is not marked as read-only, because some of
      // its words are among those that write.
      for await (const { rows } of query(MAY_WRITE, [], { signal, readOnly: false }))
        for (const [answer] of rows) return answer !== 0;
      return undefined;
    },
    query,
    reset: () =>
      new Promise((done, fail) => {
        connection.reset((error) => (error ? fail(error) : done()));
      }),
    close: async () => connection.close(),
  };
}

/** The longest timer of Node.js: the abort signal limits the time, not the driver. */
const MAX_TIMER_MS = 2_147_483_647;

/** The server does not offer TLS, but the connection requires it. */
class NoTls extends Error {}

function connected(
  { Connection }: Tedious,
  { route, connectTo, user, password, database, ca_certificate: ca }: MssqlOptions,
  tls: TlsOptions | false,
): Promise<TdsConnection> {
  let current: Socket | undefined;
  const connector = async ({ host, port }: Target): Promise<Socket> => {
    const named = parseHost(host);
    const isSame = port === route.port && hostText(named) === route.host;
    const socket = await untilConnected((isSame ? route : await connectTo({ host, port })).connect());
    if (tls !== false) refusePlainLogin(socket);
    current = socket;
    return socket;
  };
  const connection = new Connection({
    server: route.host,
    authentication: { type: 'default', options: { userName: user, password } },
    options: {
      appName: 'troupe',
      connector,
      connectTimeout: MAX_TIMER_MS,
      cryptoCredentialsDetails: ca === undefined ? {} : { ca },
      database,
      encrypt: tls !== false,
      maxRetriesOnTransientErrors: 0,
      port: route.port,
      requestTimeout: 0,
      trustServerCertificate: tls !== false && !tls.rejectUnauthorized,
    },
  });
  connection.on('error', () => {}); // the running request gets this error, too
  let category: FailureCategory | undefined;
  // The error has the server's message but not its number. This event has the number.
  connection.on('errorMessage', ({ number }: { readonly number?: unknown }) => {
    category = LOGIN_CATEGORIES.get(number) ?? category;
  });
  return new Promise((done, fail) => {
    endOnUnreadable(connection, () => {
      const failure = new DatasourceFailure('failed');
      fail(failure);
      current?.destroy(failure);
    });
    connection.connect((error) => {
      if (!error) done(connection);
      else fail(category === undefined ? error : new DatasourceFailure(category));
    });
  });
}

const LOGIN_PACKET = 0x10;

/**
 * Destroys the socket when the driver is about to send an unencrypted login. If the server claims that it has no
 * encryption, the driver would continue unencrypted and send the password. Only login packets begin with this byte;
 * TLS records do not.
 */
function refusePlainLogin(socket: Socket): void {
  const write = socket.write.bind(socket);
  Object.defineProperty(socket, 'write', {
    writable: true, // Node.js replaces `write` when the server closes its side
    value: (chunk: Uint8Array, ...rest: []) => {
      if (chunk[0] !== LOGIN_PACKET) return write(chunk, ...rest);
      socket.destroy(new NoTls());
      return false;
    },
  });
}

function hostText(host: ReturnType<typeof parseHost>): string | undefined {
  return host.kind === 'name' ? host.name : host.kind === 'address' ? host.address.text : undefined;
}

function untilConnected(socket: Socket): Promise<Socket> {
  return new Promise((done, fail) => {
    socket.once('connect', () => done(socket));
    socket.once('error', fail);
    socket.once('close', () => fail(new DatasourceFailure('unreachable')));
  });
}

const LOGIN_CATEGORIES: ReadonlyMap<unknown, FailureCategory> = new Map<unknown, FailureCategory>([
  [4060, 'database_missing'],
  [911, 'database_missing'],
  [18456, 'authentication'],
]);

/** Returns the category of an error of the driver or of its socket. */
export function classifyMssql(error: unknown): FailureCategory | undefined {
  const code = codeOf(error);
  if (code === 'ELOGIN') return 'authentication';
  if (code === 'ETIMEOUT') return 'timeout';
  if (code === 'ECANCEL') return 'cancelled';
  if (error instanceof Error && (error instanceof NoTls || code === 'EENCRYPT')) return 'tls';
  if (code !== 'ESOCKET') return undefined;
  // The driver wraps the error of the socket.
  const cause = causeOf(error);
  if (cause instanceof NoTls) return 'tls';
  if (cause instanceof DatasourceFailure) return cause.category;
  return categoryOfSocketError(cause) ?? 'unreachable';
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

/** Returns the server's message if the error is about a statement. */
export function explainMssql(error: unknown): string | undefined {
  if (codeOf(error) === 'EREQUEST' && error instanceof Error) return error.message;
  return explainRemote(error);
}

interface MssqlChannel {
  readonly driver: Tedious;
  readonly connection: TdsConnection;
  readonly route: EgressRoute;
}

async function* rowsOf(
  { driver: { Request, TYPES }, connection, route }: MssqlChannel,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly, onChanged }: QueryOptions,
): AsyncGenerator<RowBatch> {
  if (readOnly && !mayRunReadOnly(sql)) throw refuseWriting();
  signal.throwIfAborted();
  const request = new Request(sql, (error, rowCount) => {
    if (!error && results.columns === undefined && rowCount !== undefined) onChanged?.(rowCount);
    results.end(error ?? undefined);
  });
  const results = resultOf(request, route);
  parameters.forEach((value, at) => {
    refuseInfinite(value);
    const bytes = value instanceof Uint8Array ? Buffer.from(value) : value;
    request.addParameter(
      `p${at + 1}`,
      TYPES[typeFor(value)],
      typeof bytes === 'bigint' ? String(bytes) : bytes,
    );
  });
  const cancel = () => connection.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    connection.execSql(request);
    yield* results.batches();
  } finally {
    signal.removeEventListener('abort', cancel);
    if (!results.ended) {
      connection.cancel();
      await results.discardRest();
    }
  }
}

/** Returns the queue of a request's rows. The caller ends the queue. */
function resultOf(request: TdsRequest, route: EgressRoute): RowQueue {
  const queue = new RowQueue({
    pause: () => request.pause(),
    resume: () => request.resume(),
    receivedBytes: () => route.receivedBytes(),
  });
  request.on('columnMetadata', (columns: readonly TdsColumn[]) => {
    if (queue.columns !== undefined)
      return queue.fail(new RemoteError('SEVERAL', 'Statements with several results are not supported.'));
    queue.columns = columns.map(mssqlColumn);
  });
  request.on('row', (cells: readonly { readonly value: unknown; readonly metadata: TdsColumn }[]) => {
    try {
      queue.push(cells.map(({ value, metadata }) => cellOf(value, metadata)));
    } catch (error) {
      queue.fail(error instanceof Error ? error : new DatasourceFailure('failed'));
    }
  });
  return queue;
}
