/** The part of SQL Server's protocol (TDS, without TLS) that a driver needs to log in and to read a result. */
import type { Socket } from 'node:net';
import { listeningWith, type Owner } from '../listening.ts';

/** The running stand-in. */
export interface TdsStandIn {
  readonly port: number;
  /** Login packets that arrived unencrypted. */
  readonly logins: readonly Buffer[];
  /** The types of all messages so far. */
  readonly types: readonly number[];
  /** The types of the messages before which the server has to reset the connection. */
  readonly resets: readonly number[];
}

const PRELOGIN = 0x12;
const LOGIN = 0x10;
/** The type of a message that runs statements without parameters. */
export const BATCH = 0x01;
/** The type of a message that runs a statement with parameters. */
export const RPC = 0x03;
const RESET_CONNECTION = 0x08;
const ATTENTION = 0x06;
const REPLY = 0x04;

/** Starts a stand-in, which ends with the owner. */
export async function tdsStandIn(owner: Owner): Promise<TdsStandIn> {
  const logins: Buffer[] = [];
  const types: number[] = [];
  const resets: number[] = [];
  const answer = (type: number, status: number, body: Buffer): Buffer | undefined => {
    types.push(type);
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
        return done(0x20);
      case RPC:
        return queryAnswer(
          logins.at(-1)?.toString('utf16le') ?? '',
          body.toString('utf16le'),
          body.subarray(1).toString('utf16le'),
        );
    }
  };
  const port = await listeningWith(owner, (socket) => serve(socket, answer));
  return { port, logins, types, resets };
}

function serve(
  socket: Socket,
  answer: (type: number, status: number, body: Buffer) => Buffer | undefined,
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
      if (body !== undefined) {
        // The request that is still unanswered ends first.
        if (type === ATTENTION) socket.write(packet(done(0)));
        socket.write(packet(body));
      }
    }
  });
}

function packet(body: Buffer): Buffer {
  const header = Buffer.from([REPLY, 1, 0, 0, 0, 0, 1, 0]);
  header.writeUInt16BE(body.length + 8, 2);
  return Buffer.concat([header, body]);
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

function queryAnswer(login: string, ...readings: readonly string[]): Buffer | undefined {
  const has = (sql: string) => readings.some((one) => one.includes(sql));
  if (has('HAS_PERMS_BY_NAME')) {
    if (login.includes('analyst-unasked')) return failed(229, 'You may not ask.');
    const answer = login.includes('analyst-writing') ? 1 : 0;
    return Buffer.concat([columns([integer('may_write')]), row([intCell(answer)]), done(0x10, 1)]);
  }
  if (has('SELECT forever')) return undefined;
  if (has('SELECT unreadable')) return UNREADABLE;
  if (has('SELECT never')) return Buffer.concat([columns([moment('at')]), row([NEVER]), done(0x10, 1)]);
  if (has('SELECT decimal')) {
    const digits = has('SELECT decimal of 16') ? 1_234_567_890_123_456n : 123_456_789_012_345n;
    return Buffer.concat([columns([decimal('amount')]), row([decimalCell(digits)]), done(0x10, 1)]);
  }
  if (has('INSERT three')) return done(0x10, 3);
  if (has('SELECT wrong')) return failed(102, 'Wrong near secret-password.');
  if (has('SELECT 1')) return Buffer.concat([columns([integer('one')]), row([intCell(1)]), done(0x10, 1)]);
  return Buffer.concat([
    columns([integer('id'), varchar('name')]),
    row([intCell(7), textCell('é')]),
    row([intCell(8), textCell(undefined)]),
    done(0x10, 2),
  ]);
}

function failed(number: number, message: string): Buffer {
  const head = Buffer.alloc(6);
  head.writeUInt32LE(number);
  head.writeUInt8(1, 4);
  head.writeUInt8(14, 5);
  const words = Buffer.concat([uint16(message.length), Buffer.from(message, 'utf16le')]);
  return Buffer.concat([token(0xaa, [head, words, text('s'), text(''), Buffer.alloc(4)]), done(2)]);
}

function done(status: number, rows = 0): Buffer {
  const body = Buffer.alloc(13);
  body.writeUInt8(0xfd);
  body.writeUInt16LE(status, 1);
  body.writeUInt8(rows, 5);
  return body;
}

function columns(described: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([0x81]), uint16(described.length), ...described]);
}

function integer(name: string): Buffer {
  return Buffer.concat([Buffer.alloc(4), uint16(1), Buffer.from([0x26, 4]), text(name)]);
}

function moment(name: string): Buffer {
  return Buffer.concat([Buffer.alloc(4), uint16(1), Buffer.from([0x6f, 8]), text(name)]);
}

/** A decimal of up to 18 digits, 6 of them after the point. */
function decimal(name: string): Buffer {
  return Buffer.concat([Buffer.alloc(4), uint16(1), Buffer.from([0x6a, 9, 18, 6]), text(name)]);
}

function decimalCell(digits: bigint): Buffer {
  const value = Buffer.alloc(10);
  value.set([9, 1]); // the length of the number, and its positive sign
  value.writeBigUInt64LE(digits, 2);
  return value;
}

/** A day some five million years from now, which JavaScript cannot hold. */
const NEVER = Buffer.from([8, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]);

function varchar(name: string): Buffer {
  const collation = Buffer.from([9, 4, 208, 0, 52]);
  return Buffer.concat([Buffer.alloc(4), uint16(1), Buffer.from([0xe7]), uint16(200), collation, text(name)]);
}

function row(cells: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([0xd1]), ...cells]);
}

function intCell(value: number): Buffer {
  return Buffer.from([4, value, 0, 0, 0]);
}

function textCell(value: string | undefined): Buffer {
  if (value === undefined) return uint16(0xffff);
  const bytes = Buffer.from(value, 'utf16le');
  return Buffer.concat([uint16(bytes.length), bytes]);
}

function token(id: number, parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([id]), uint16(body.length), body]);
}

/** Returns text, preceded by its length in characters. */
function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'utf16le')]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}
