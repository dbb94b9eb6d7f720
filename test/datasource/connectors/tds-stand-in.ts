/** The part of SQL Server's protocol (TDS, without TLS) that a driver needs to log in and to read a result. */
import type { Socket } from 'node:net';
import { listeningWith, type Owner } from '../listening.ts';
import { parametersIn } from './tds-call.ts';
import {
  bigint,
  binary,
  bit,
  columns,
  date,
  datetime2,
  decimal,
  done,
  float,
  guid,
  integer,
  longText,
  moment,
  NEVER,
  row,
  text,
  token,
  uint16,
  varchar,
} from './tds-values.ts';

/** The running stand-in. */
export interface TdsStandIn {
  readonly port: number;
  /** Login packets that arrived unencrypted. */
  readonly logins: readonly Buffer[];
  /** The types of all messages so far. */
  readonly types: readonly number[];
  /** The types of the messages before which the server has to reset the connection. */
  readonly resets: readonly number[];
  /** Returns whether the last statement has no answer yet, or only a part of it. */
  isRunning(): boolean;
  /** Returns the statement of the last call, the declaration of its parameters, and their values. */
  lastCall(): readonly unknown[];
  /** Cuts all connections. */
  disconnect(): void;
}

const PRELOGIN = 0x12;
const LOGIN = 0x10;
/** The type of a message that runs statements without parameters. */
export const BATCH = 0x01;
/** The type of a message that runs a statement with parameters. */
export const RPC = 0x03;
const RESET_CONNECTION = 0x08;
/** The type of a message that cancels the statement before it. */
export const ATTENTION = 0x06;
const REPLY = 0x04;

/** Starts a stand-in, which ends with the owner. */
export async function tdsStandIn(owner: Owner): Promise<TdsStandIn> {
  const logins: Buffer[] = [];
  const types: number[] = [];
  const resets: number[] = [];
  let lastCall: readonly unknown[] = [];
  let isRunning = false;
  const sockets = new Set<Socket>();
  const answer = (type: number, status: number, body: Buffer): Answer | undefined => {
    types.push(type);
    const wasRunning = isRunning;
    isRunning = false;
    if ((status & RESET_CONNECTION) !== 0) resets.push(type);
    switch (type) {
      case PRELOGIN:
        return PRELOGIN_WITHOUT_TLS;
      case LOGIN:
        logins.push(body);
        return loginAnswer(body.toString('utf16le'));
      case BATCH:
        return done(0);
      case ATTENTION:
        return wasRunning ? { before: done(0), last: done(0x20) } : done(0x20);
      case RPC: {
        lastCall = parametersIn(body);
        const given = queryAnswer(logins.at(-1)?.toString('utf16le') ?? '', String(lastCall[0]));
        isRunning = given === undefined || !Buffer.isBuffer(given);
        return given;
      }
    }
  };
  const port = await listeningWith(owner, (socket) => {
    sockets.add(socket);
    serve(socket, answer);
  });
  const disconnect = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port,
    logins,
    types,
    resets,
    isRunning: () => isRunning,
    lastCall: () => lastCall,
    disconnect,
  };
}

/** A message, two messages, or a part of one, after which more or nothing comes. */
type Answer =
  | Buffer
  | { readonly before: Buffer; readonly last: Buffer }
  | { readonly part: Buffer; readonly forever?: Buffer };

function serve(
  socket: Socket,
  answer: (type: number, status: number, body: Buffer) => Answer | undefined,
): void {
  let pending = Buffer.alloc(0);
  let message: Buffer[] = [];
  socket.on('data', (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 8 && pending.length >= pending.readUInt16BE(2)) {
      const [type = 0, status = 0] = pending;
      message.push(pending.subarray(8, pending.readUInt16BE(2)));
      pending = pending.subarray(pending.readUInt16BE(2));
      if ((status & 1) === 0) continue;
      const body = answer(type, status, Buffer.concat(message));
      message = [];
      if (body === undefined) continue;
      if (Buffer.isBuffer(body)) socket.write(packets(body));
      else if ('before' in body) socket.write(Buffer.concat([packets(body.before), packets(body.last)]));
      else sendPart(socket, body.part, body.forever);
    }
  });
}

const PACKET_BYTES = 4096 - 8;

/** Returns the packets of a message; without the mark of the last one for a part of a message. */
function packets(body: Buffer, isPart = false): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; at += PACKET_BYTES) {
    const content = body.subarray(at, at + PACKET_BYTES);
    const isLast = !isPart && at + PACKET_BYTES >= body.length;
    const header = Buffer.from([REPLY, isLast ? 1 : 0, 0, 0, 0, 0, 1, 0]);
    header.writeUInt16BE(content.length + 8, 2);
    parts.push(header, content);
  }
  return Buffer.concat(parts);
}

/** Sends a part of a message, and then the same bytes for as long as the client reads. */
function sendPart(socket: Socket, part: Buffer, forever?: Buffer): void {
  socket.write(packets(part, true));
  if (forever === undefined) return;
  const more = packets(forever, true);
  const pour = () => {
    while (!socket.destroyed && socket.write(more));
  };
  socket.on('drain', pour);
  pour();
}

/** The version, then the statement that encryption is not supported. */
const PRELOGIN_WITHOUT_TLS = Buffer.from([0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 255, 16, 0, 0, 0, 0, 0, 2]);

/** A byte that begins no token of the protocol. */
const UNREADABLE = Buffer.from([0, 0, 0, 0]);

function loginAnswer(login: string): Buffer {
  if (login.includes('unreadable')) return UNREADABLE;
  if (!login.includes('analyst') && !login.includes('redirected'))
    return failed(18456, 'Login failed for user.');
  if (!login.includes('sales')) return failed(4060, 'Cannot open database.');
  const name = text('stand-in');
  const acknowledged = token(0xad, [Buffer.from([1, 0x74, 0, 0, 4]), name, Buffer.from([16, 0, 0, 0])]);
  return Buffer.concat([
    acknowledged,
    ...(login.includes('redirected') ? [routing('169.254.169.254', 1433)] : []),
    done(0),
  ]);
}

/** Asks the client to connect to another server. */
function routing(host: string, port: number): Buffer {
  const name = Buffer.from(host, 'utf16le');
  const value = Buffer.concat([Buffer.from([0]), uint16(port), uint16(host.length), name]);
  return token(0xe3, [Buffer.from([20]), uint16(value.length), value, uint16(0)]);
}

const result = (described: readonly Buffer[], ...rows: readonly (readonly Buffer[])[]): Buffer =>
  Buffer.concat([columns(described), ...rows.map(row), done(0x10, rows.length)]);

/** The number of rows of `SELECT many`. */
export const MANY = 2500;
/** The number of rows of `SELECT large rows`, and the characters of each. */
export const LARGE = [30, 50_000] as const;

function queryAnswer(login: string, sql: string): Answer | undefined {
  if (sql.includes('HAS_PERMS_BY_NAME')) {
    if (login.includes('analyst-unasked')) return failed(229, 'You may not ask.');
    return result([integer.column('may_write')], [integer.cell(login.includes('analyst-writing') ? 1 : 0)]);
  }
  if (sql === 'SELECT forever') return undefined;
  if (sql === 'SELECT unreadable') return UNREADABLE;
  if (sql === 'SELECT never') return result([moment.column('at')], [NEVER]);
  if (sql.startsWith('SELECT decimal of'))
    return result(
      [decimal.column('amount')],
      [decimal.cell(sql.endsWith('16') ? 1_234_567_890_123_456n : 123_456_789_012_345n)],
    );
  if (sql === 'INSERT three') return done(0x10, 3);
  if (sql === 'SELECT wrong') return failed(102, 'Wrong near secret-password.');
  const one = [integer.column('one')];
  if (sql === 'SELECT 1 SELECT 2')
    return Buffer.concat([result(one, [integer.cell(1)]), result(one, [integer.cell(2)])]);
  if (sql === 'SELECT nothing') return result(one);
  if (sql === 'SELECT many')
    return result(one, ...Array.from({ length: MANY }, (_, at) => [integer.cell(at + 1)]));
  if (sql === 'SELECT partly')
    return {
      part: Buffer.concat([columns(one), ...Array.from({ length: MANY }, () => row([integer.cell(1)]))]),
    };
  const [rows, chars] = LARGE;
  const long = [longText.column('t')];
  if (sql === 'SELECT large rows')
    return result(long, ...Array.from({ length: rows }, () => [longText.cell('x'.repeat(chars))]));
  if (sql === 'SELECT endless') {
    const part = Buffer.concat([columns(long), Buffer.from([0xd1]), longText.start]);
    return { part, forever: longText.chunk('x'.repeat(chars)) };
  }
  if (sql === 'SELECT * FROM item') return ITEMS;
  return result(one, [integer.cell(1)]);
}

const ITEMS = result(
  [
    integer.column('i'),
    bigint.column('l'),
    bit.column('b'),
    float.column('f'),
    decimal.column('d'),
    varchar.column('t'),
    binary.column('y'),
    date.column('a'),
    datetime2.column('s'),
    guid.column('u'),
    varchar.column('z'),
  ],
  [
    integer.cell(7),
    bigint.cell(9_007_199_254_740_993n),
    bit.cell(true),
    float.cell(1.5),
    decimal.cell(1_100_000n),
    varchar.cell('é'),
    binary.cell(Buffer.from([0, 255])),
    date.cell('2024-02-29'),
    datetime2.cell('2024-01-02', 11_045_678_901),
    guid.cell('5b4d2f8e-0b2a-4f0e-9a55-1c1f5b0a7d3e'),
    varchar.cell(undefined),
  ],
);

function failed(number: number, message: string): Buffer {
  const head = Buffer.alloc(6);
  head.writeUInt32LE(number);
  head.writeUInt8(1, 4);
  head.writeUInt8(14, 5);
  const words = Buffer.concat([uint16(message.length), Buffer.from(message, 'utf16le')]);
  return Buffer.concat([token(0xaa, [head, words, text('s'), text(''), Buffer.alloc(4)]), done(2)]);
}
