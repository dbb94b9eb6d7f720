/** Columns and values of SQL Server's protocol (TDS), as a server sends them. */

/** A type: the description of a column, and a value in a row. */
interface TdsType<Value extends readonly unknown[]> {
  column(name: string): Buffer;
  cell(...value: Value): Buffer;
}

function type<Value extends readonly unknown[]>(
  info: readonly number[],
  cell: (...value: Value) => Buffer,
): TdsType<Value> {
  return {
    column: (name) => Buffer.concat([Buffer.alloc(4), uint16(1), Buffer.from(info), text(name)]),
    cell,
  };
}

/** Returns a value of a type of fixed size, preceded by its length. */
function sized(bytes: number, write: (value: Buffer) => void): Buffer {
  const value = Buffer.alloc(bytes);
  write(value);
  return Buffer.concat([Buffer.from([bytes]), value]);
}

const COLLATION = [9, 4, 208, 0, 52];

export const integer = type([0x26, 4], (value: number) => sized(4, (bytes) => bytes.writeInt32LE(value)));
export const bigint = type([0x26, 8], (value: bigint) => sized(8, (bytes) => bytes.writeBigInt64LE(value)));
export const bit = type([0x68, 1], (value: boolean) => Buffer.from([1, value ? 1 : 0]));
export const float = type([0x6d, 8], (value: number) => sized(8, (bytes) => bytes.writeDoubleLE(value)));
/** A decimal of up to 18 digits, 6 of them after the point. */
export const decimal = type([0x6a, 9, 18, 6], (digits: bigint) =>
  sized(9, (bytes) => {
    bytes[0] = 1; // positive
    bytes.writeBigUInt64LE(digits, 1);
  }),
);
export const varchar = type([0xe7, 200, 0, ...COLLATION], (value: string | undefined) => {
  if (value === undefined) return uint16(0xffff);
  const bytes = Buffer.from(value, 'utf16le');
  return Buffer.concat([uint16(bytes.length), bytes]);
});
export const binary = type([0xa5, 200, 0], (value: Buffer) => Buffer.concat([uint16(value.length), value]));
export const date = type([0x28], (day: string) => sized(3, (bytes) => bytes.writeUIntLE(dayOf(day), 0, 3)));
/** The time is in microseconds since midnight. */
export const datetime2 = type([0x2a, 7], (day: string, micros: number) =>
  sized(8, (bytes) => {
    bytes.writeUIntLE(micros * 10, 0, 5);
    bytes.writeUIntLE(dayOf(day), 5, 3);
  }),
);
export const moment = type([0x6f, 8], (value: Buffer) => value);
/** A day some five million years from now, which JavaScript cannot hold. */
export const NEVER = Buffer.from([8, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]);
export const guid = type([0x24, 16], (value: string) => {
  const hex = Buffer.from(value.replaceAll('-', ''), 'hex');
  const parts = [hex.subarray(0, 4), hex.subarray(4, 6), hex.subarray(6, 8)].map((part) => part.reverse());
  return Buffer.concat([Buffer.from([16]), ...parts, hex.subarray(8)]);
});

const LENGTH_UNKNOWN = Buffer.from([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
const chunk = (value: string) => {
  const bytes = Buffer.from(value, 'utf16le');
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
};

/** Text of any length, which is sent in chunks. */
export const longText = {
  ...type([0xe7, 0xff, 0xff, ...COLLATION], (value: string) =>
    Buffer.concat([LENGTH_UNKNOWN, chunk(value), Buffer.alloc(4)]),
  ),
  start: LENGTH_UNKNOWN,
  chunk,
};

/** Returns the days since the first of January of the year 1. */
function dayOf(day: string): number {
  return (Date.parse(day) - Date.parse('0001-01-01')) / 86_400_000;
}

export function columns(described: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([0x81]), uint16(described.length), ...described]);
}

export function row(cells: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([0xd1]), ...cells]);
}

/** Returns the end of a statement. */
export function done(status: number, rows = 0): Buffer {
  const body = Buffer.alloc(13);
  body.writeUInt8(0xfd);
  body.writeUInt16LE(status, 1);
  body.writeUInt32LE(rows, 5);
  return body;
}

export function token(id: number, parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([id]), uint16(body.length), body]);
}

/** Returns text, preceded by its length in characters. */
export function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'utf16le')]);
}

export function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}
