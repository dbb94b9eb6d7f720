/** Reads the parameters of a call in SQL Server's protocol (TDS). */
import assert from 'node:assert/strict';

/** The types of parameters that the connector sends. */
const NVARCHAR = 0xe7;
const VARBINARY = 0xa5;
const FLOAT = 0x6d;
const INTEGER = 0x26;
const BIT = 0x68;

/** Returns the values of a call's parameters: the statement, the declaration of its parameters, and these. */
export function parametersIn(body: Buffer): unknown[] {
  const headers = body.readUInt32LE(0);
  let at = headers + 6; // after the number of the procedure and its flags
  const values: unknown[] = [];
  while (at < body.length) {
    const nameChars = body.readUInt8(at);
    at += 1 + 2 * nameChars + 1; // the name and the status
    const type = body.readUInt8(at);
    const isVariable = type === NVARCHAR || type === VARBINARY;
    at += isVariable ? 3 : 2; // the type and the greatest length
    if (type === NVARCHAR) at += 5; // the collation
    const length = isVariable ? body.readUInt16LE(at) : body.readUInt8(at);
    at += isVariable ? 2 : 1;
    if (isVariable ? length === 0xffff : length === 0) {
      values.push(null);
      continue;
    }
    values.push(readValue(type, body.subarray(at, at + length)));
    at += length;
  }
  return values;
}

function readValue(type: number, bytes: Buffer): unknown {
  if (type === NVARCHAR) return bytes.toString('utf16le');
  if (type === VARBINARY) return new Uint8Array(bytes);
  if (type === FLOAT) return bytes.readDoubleLE();
  if (type === BIT) return bytes[0] === 1;
  assert.equal(type, INTEGER);
  return bytes.length === 8 ? bytes.readBigInt64LE() : bytes.readInt32LE();
}
