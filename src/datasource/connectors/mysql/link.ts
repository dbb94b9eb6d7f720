/** Links to servers that speak the MySQL protocol. */
import type { Socket } from 'node:net';
import driver, { type Connection, type FieldPacket } from 'mysql2';
import type { EgressRoute } from '../../egress/egress-route.ts';
import { type TlsOptions, tlsAttempts, withTls } from '../../egress/tls-mode.ts';
import { DatasourceFailure } from '../../failure.ts';
import { RowQueue } from '../../query/row-queue.ts';
import { foldLetters } from '../../query/sql-words.ts';
import { beginsAsReading } from '../../query/statements.ts';
import {
  type ColumnType,
  integerCell,
  type Parameter,
  type QueryOptions,
  type ResultColumn,
  type RowBatch,
  type RowValue,
  refuseInfinite,
} from '../../rows.ts';
import type { DatabaseLink } from '../link.ts';
import type { ServerAccount } from '../members.ts';
import { cancelRepeatedly } from '../repeated-cancel.ts';
import { mysqlLacksTls } from './errors.ts';

/** A server and an account on it. */
export interface MysqlOptions extends ServerAccount {
  readonly route: EgressRoute;
}

/**
 * The settings that change the form of values, where a text ends, or whether a write is kept; a server may have other defaults for them, or set
 * them in `init_connect`. Without autocommit, every write would be undone when the connection is reset. The driver itself
 * sets the character set and IGNORE_SPACE when it connects.
 */
const PINNED = [
  'NAMES utf8mb4 COLLATE utf8mb4_unicode_ci',
  // without the second mode, MySQL takes a backslash in a text as an escape, and so does the search for placeholders
  "sql_mode = REPLACE(REPLACE(CONCAT(@@sql_mode, ',IGNORE_SPACE'), 'PAD_CHAR_TO_FULL_LENGTH', ''), 'NO_BACKSLASH_ESCAPES', '')",
  'autocommit = 1',
  "completion_type = 'NO_CHAIN'", // otherwise the ROLLBACK after a read-only statement begins a transaction or disconnects
];
const SET_PINNED = `SET ${PINNED.join(', ')}`;

/** Opens a link. Rejects with errors of the driver and of sockets. */
export async function openMysql(options: MysqlOptions): Promise<DatabaseLink> {
  const attempts = tlsAttempts(options.tls, options.route, options.ca_certificate);
  const { connection, lost, connectAgain } = await withTls(
    attempts,
    async (tls) => ({
      ...(await connected(options, tls)),
      connectAgain: async () => (await connected(options, tls)).connection,
    }),
    mysqlLacksTls,
  );
  await run(connection, SET_PINNED);
  return {
    lost,
    probe: () => run(connection, 'SELECT 1'),
    query: (sql, parameters, query) =>
      rowsOf({ connection, connectAgain, route: options.route }, sql, parameters, query),
    async reset() {
      await new Promise<void>((done, fail) => connection.reset((error) => (error ? fail(error) : done())));
      // The reset keeps the database of the last USE, and undoes the driver's settings of the connection.
      await run(connection, `USE ${driver.escapeId(options.database)}`);
      await run(connection, SET_PINNED);
    },
    close: () => new Promise((done) => connection.end(() => done())),
  };
}

interface Connected {
  readonly connection: Connection;
  /** Resolves when the socket is closed. */
  readonly lost: Promise<void>;
}

function connected(
  { route, user, password, database }: MysqlOptions,
  tls: TlsOptions | false,
): Promise<Connected> {
  const socket = route.connect();
  const lost = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const connection = driver.createConnection({
    host: route.host,
    port: route.port,
    user,
    password,
    database,
    stream: () => socket,
    ...(tls !== false && {
      ssl: { ...tls, verifyIdentity: tls.rejectUnauthorized && !tls.checkServerIdentity },
    }),
    // The driver can generate parser code for rows, from names that the server chooses. This turns
    // that off.
    disableEval: true,
    flags: ['-LOCAL_FILES'],
    dateStrings: true,
    supportBigNumbers: true,
    jsonStrings: true,
    rowsAsArray: true,
  });
  connection.on('error', () => {}); // the running query gets this error too
  rejectUnorderedPackets(connection, socket);
  rejectLargeRows(connection, socket);
  return new Promise((done, fail) =>
    connection.connect((error) => (error ? fail(error) : done({ connection, lost }))),
  );
}

/**
 * Destroys the socket when a packet is out of order. The driver itself would only log a line for each such packet and
 * continue.
 */
function rejectUnorderedPackets(connection: Connection, socket: Socket): void {
  const handle: unknown = Reflect.get(connection, 'handlePacket');
  if (typeof handle !== 'function') return;
  Reflect.set(connection, 'handlePacket', (packet: { readonly sequenceId: number } | undefined) => {
    // A paused connection keeps its packets and handles them, in order, when it is resumed.
    const isHandled = packet !== undefined && Reflect.get(connection, '_paused') !== true;
    if (isHandled && packet.sequenceId !== Reflect.get(connection, 'sequenceId')) {
      socket.destroy(new DatasourceFailure('failed'));
    } else handle.call(connection, packet);
  });
}

/** The largest packet. A packet of this size is continued by the next one. */
const FULL_PACKET_BYTES = 0xffffff;

/**
 * Rejects rows beyond the limit: the driver would buffer a row of any size. Only such a row fills a
 * whole packet.
 */
function rejectLargeRows(connection: Connection, socket: Socket): void {
  const parser: unknown = Reflect.get(connection, 'packetParser');
  if (typeof parser !== 'object' || parser === null) throw new DatasourceFailure('failed');
  let length: unknown = Reflect.get(parser, 'length');
  Object.defineProperty(parser, 'length', {
    get: () => length,
    set(value: unknown) {
      length = value;
      if (value === FULL_PACKET_BYTES) socket.destroy(new DatasourceFailure('row_too_large'));
    },
  });
}

function run(connection: Connection, sql: string): Promise<void> {
  return new Promise((done, fail) => connection.query(sql, (error) => (error ? fail(error) : done())));
}

const ONLY_READING =
  'Only SELECT, WITH, VALUES, TABLE, SHOW, DESCRIBE and EXPLAIN are allowed here, without INTO OUTFILE or DUMPFILE.';

/**
 * The server executes the text in such a comment, so the first word outside of comments may not be
 * the statement's first word.
 */
const EXECUTED_COMMENT = /\/\*M?!/i;
/**
 * These words are searched for in the whole text, because comments and line breaks may separate
 * them.
 */
const WRITES_FILE = /outfile|dumpfile/i;

/** A read-only transaction does not keep an account with the FILE privilege from writing files on the database's host. */
function mayRunReadOnly(sql: string): boolean {
  return beginsAsReading(sql) && !EXECUTED_COMMENT.test(sql) && !WRITES_FILE.test(foldLetters(sql));
}

const SEVERAL_RESULTS = 'Statements with several results are not supported.';

interface MysqlChannel {
  readonly connection: Connection;
  readonly connectAgain: () => Promise<Connection>;
  readonly route: EgressRoute;
}

async function* rowsOf(
  { connection, connectAgain, route }: MysqlChannel,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly, onChanged }: QueryOptions,
): AsyncGenerator<RowBatch> {
  if (readOnly && !mayRunReadOnly(sql)) throw new DatasourceFailure('query', undefined, ONLY_READING);
  // The mode of the session counts too: statements such as CREATE end the transaction and would then write.
  await run(connection, `SET SESSION TRANSACTION READ ${readOnly ? 'ONLY' : 'WRITE'}`);
  if (readOnly) await run(connection, 'START TRANSACTION READ ONLY');
  const stopCancelling = cancelRepeatedly(signal, () => killQuery(connection, connectAgain));
  let finished = false;
  let rows: RowQueue | undefined;
  const lost = (error: Error) => rows?.end(error);
  try {
    signal.throwIfAborted();
    const queue = new RowQueue({
      pause: () => connection.pause(),
      resume: () => connection.resume(),
      receivedBytes: () => route.receivedBytes(),
    });
    // The server receives parameters separately from the statement: no SQL is composed here.
    const query =
      parameters.length === 0 ? connection.query(sql) : connection.execute(sql, parameters.map(parameterFor));
    rows = queue;
    let readers: readonly CellReader[] = [];
    let hasSeveral = false;
    query.on('fields', (fields: readonly FieldPacket[] | undefined) => {
      if (fields === undefined) return;
      if (queue.columns === undefined) {
        queue.columns = fields.map(columnOf);
        readers = fields.map(readerOf);
      } else {
        hasSeveral = true;
        queue.fail(new DatasourceFailure('query', undefined, SEVERAL_RESULTS));
      }
    });
    query.on('result', (row: unknown) => {
      if (hasSeveral) return; // the columns of this result are not those of the first one
      // A statement that returns no rows emits its summary, which is not a list.
      if (Array.isArray(row)) queue.push(row.map((cell, at) => (readers[at] ?? cellOf)(cell)));
      else if (typeof Object(row).affectedRows === 'number') onChanged?.(Object(row).affectedRows);
    });
    query.on('error', lost);
    // The driver reports a lost connection only to queries with a callback, which this query does not have.
    connection.on('error', lost);
    query.on('end', () => queue.end());
    yield* queue.batches();
    finished = true;
  } finally {
    if (!finished) {
      await killQuery(connection, connectAgain).catch(() => {}); // without the kill, discarding the rest takes as long as the query
      await rows?.discardRest();
    }
    stopCancelling();
    connection.off('error', lost);
    if (readOnly) await run(connection, 'ROLLBACK').catch(() => {}); // the connection may be lost
  }
}

async function killQuery({ threadId }: Connection, connectAgain: () => Promise<Connection>): Promise<void> {
  const other = await connectAgain();
  try {
    await run(other, `KILL QUERY ${threadId}`);
  } finally {
    other.destroy();
  }
}

function parameterFor(parameter: Parameter): string | number | boolean | null | Buffer {
  if (parameter instanceof Uint8Array) return Buffer.from(parameter);
  refuseInfinite(parameter);
  if (typeof parameter !== 'bigint') return parameter;
  // The driver sends every number as a double; text keeps the digits that a double would lose.
  const rounded = Number(parameter);
  return Number.isSafeInteger(rounded) ? rounded : String(parameter);
}

const { Types } = driver;
const BINARY = 63; // the character set of binary columns

const COLUMN_TYPES = new Map<number, ColumnType>([
  [Types.TINY, 'integer'],
  [Types.SHORT, 'integer'],
  [Types.INT24, 'integer'],
  [Types.LONG, 'integer'],
  [Types.LONGLONG, 'integer'],
  [Types.YEAR, 'integer'],
  [Types.FLOAT, 'float'],
  [Types.DOUBLE, 'float'],
  [Types.DECIMAL, 'decimal'],
  [Types.NEWDECIMAL, 'decimal'],
  [Types.DATE, 'date'],
  [Types.NEWDATE, 'date'],
  [Types.TIME, 'time'],
  [Types.DATETIME, 'timestamp'],
  [Types.TIMESTAMP, 'timestamp'],
  [Types.JSON, 'json'],
  [Types.BIT, 'bytes'],
  // The driver parses values of these types into numbers and objects, which `cellOf` writes as JSON. Without this
  // entry they would be bytes, because their character set is binary.
  [Types.GEOMETRY, 'json'],
  [Types.VECTOR, 'json'],
]);

function columnOf({ name, columnType = Types.VAR_STRING, characterSet }: FieldPacket): ResultColumn {
  const type = COLUMN_TYPES.get(columnType) ?? (characterSet === BINARY ? 'bytes' : 'text');
  return { name, type };
}

type CellReader = (value: unknown) => RowValue;

/**
 * Returns the function that makes the cells of a column. With parameters, the server sends values in another
 * protocol: floats have other digits, and fractions of seconds have no zeros at their end. The cells are always in
 * the form without parameters.
 */
function readerOf(field: FieldPacket): CellReader {
  const { columnType = Types.VAR_STRING, decimals } = field;
  const { type } = columnOf(field);
  if (columnType === Types.FLOAT)
    return (value) => (typeof value === 'number' ? floatCell(value, decimals) : cellOf(value));
  if (type === 'integer') return (value) => (typeof value === 'string' ? integerCell(value) : cellOf(value));
  if ((type === 'time' || type === 'timestamp') && decimals > 0 && decimals <= MAX_SECOND_DIGITS)
    return (value) => (typeof value === 'string' ? withSecondDigits(value, decimals) : cellOf(value));
  return cellOf;
}

function cellOf(value: unknown): RowValue {
  if (value === null || value === undefined) return null;
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (typeof value === 'string' || typeof value === 'number') return value;
  return typeof value === 'boolean' || typeof value === 'bigint' ? value : JSON.stringify(value);
}

const MAX_SECOND_DIGITS = 6;

function withSecondDigits(text: string, digits: number): string {
  const [seconds = '', fraction = ''] = text.split('.');
  return `${seconds}.${fraction.padEnd(digits, '0')}`;
}

/** MySQL writes a FLOAT with six digits, unless its column is declared with a number of decimals. */
const FLOAT_DIGITS = 6;
const MAX_DECIMALS = 30;
/** A number halfway between two numbers with few digits has fewer digits than this. */
const TAIL_DIGITS = 40;
const HALF = '5'.padEnd(TAIL_DIGITS, '0');
/** From here on `toFixed` writes exponents. */
const MAX_FIXED = 1e21;

/** Returns a FLOAT with the digits that the server writes of it. */
function floatCell(value: number, decimals: number): number {
  if (decimals <= MAX_DECIMALS)
    return Math.abs(value) < MAX_FIXED
      ? Number(toEven(value.toFixed(decimals + TAIL_DIGITS), value.toFixed(decimals)))
      : value;
  const [long = '', exponent] = value.toExponential(FLOAT_DIGITS - 1 + TAIL_DIGITS).split('e');
  const short = value.toExponential(FLOAT_DIGITS - 1);
  const even = toEven(long, short);
  return Number(even === short ? short : `${even}e${exponent}`);
}

/**
 * Returns the rounded number. When `exact` is halfway and its kept digits are even, these digits are returned:
 * JavaScript would round up.
 */
function toEven(exact: string, rounded: string): string {
  const cut = exact.slice(0, -TAIL_DIGITS);
  return exact.endsWith(HALF) && /[02468]\.?$/.test(cut) ? cut : rounded;
}
