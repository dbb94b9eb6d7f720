import { decode, Encoder } from '@msgpack/msgpack';
import { atOnce } from '#src/base/async/slices.ts';
import { checksumOf, checksumWith } from '#src/base/text/checksum.ts';
import { recordMemory } from './record-memory.ts';

/** A kind of record: its name, which is part of every key, and the version with which its values are written. */
export interface RecordKind<T> {
  readonly name: string;
  readonly version: number;
  /**
   * Returns the current form of a value that was written with an older `version`. Absent while
   * there is only one version.
   */
  readonly upgrade?: (value: unknown, version: number) => T;
}

/** Declares a kind of record. */
export function defineRecord<T>(
  name: string,
  version: number,
  upgrade?: (value: unknown, version: number) => T,
): RecordKind<T> {
  return upgrade === undefined ? { name, version } : { name, version, upgrade };
}

/** A kind of record that has only a key: its existence is what it says. All its records are the same bytes. */
export interface MarkKind extends RecordKind<null> {
  readonly bytes: Uint8Array;
}

/** Declares a kind of record without a value. */
export function defineMark(name: string): MarkKind {
  const kind = defineRecord<null>(name, 1);
  return { ...kind, bytes: encodeRecord(kind, null) };
}

/** The first byte of every record. No MessagePack begins with it. */
const CHECKED = 0xc1;
const HEAD_BYTES = 5;

/**
 * Returns `[version, value]` as MessagePack, after a byte that marks a record and a checksum (CRC-32, 4 bytes).
 * Members that are `undefined` are omitted. A large member of bytes is copied only once.
 */
export function encodeRecord<T>(kind: RecordKind<T>, value: T): Uint8Array {
  const large = typeof value === 'object' && value !== null ? largeMemberOf(value) : undefined;
  if (large !== undefined) return atOnce(encodeWithBytes(kind, large.rest, [large.bytes]));
  const body = encoder.encodeSharedRef([kind.version, value]);
  const record = Buffer.allocUnsafe(HEAD_BYTES + body.byteLength);
  record[0] = CHECKED;
  record.set(body, HEAD_BYTES);
  record.writeUInt32LE(checksumOf(record.subarray(HEAD_BYTES)), 1);
  if (body.byteLength > MAX_KEPT_BYTES) encoder = newEncoder();
  return record;
}

/**
 * Returns the same record as `encodeRecord`. The member `name` of the value is bytes, given here as `parts`. Works in
 * steps of up to a millisecond. The record ends with those bytes, so they can be taken from there.
 */
export function encodeRecordOfParts<T>(
  kind: RecordKind<T>,
  value: T,
  name: keyof T,
  parts: readonly Uint8Array[],
): Generator<undefined, Uint8Array> {
  const { [name]: _, ...others } = value;
  return encodeWithBytes(kind, { ...others, [name]: NO_BYTES }, parts);
}

/**
 * Returns the record of the bytes in these parts. The bytes are the last member of the record.
 * Works in steps of up to a millisecond.
 */
export function encodeBytesRecord(
  kind: RecordKind<Uint8Array>,
  parts: readonly Uint8Array[],
): Generator<undefined, Uint8Array> {
  return encodeWithBytes(kind, NO_BYTES, parts);
}

/**
 * Encodes a record whose last member is bytes. `value` has no bytes in it: `parts` are used in
 * their place.
 */
function* encodeWithBytes(
  { version }: RecordKind<unknown>,
  value: unknown,
  parts: readonly Uint8Array[],
): Generator<undefined, Uint8Array> {
  const body = encoder.encodeSharedRef([version, value]);
  const start = body.subarray(0, body.byteLength - EMPTY_BYTES.length);
  let length = 0;
  for (const { byteLength } of parts) length += byteLength;
  let at = HEAD_BYTES + start.byteLength + BYTES_HEAD_BYTES;
  const record = recordMemory(at + length);
  record[0] = CHECKED;
  record.set(start, HEAD_BYTES);
  record[at - BYTES_HEAD_BYTES] = BYTES_32;
  record.writeUInt32BE(length, at - BYTES_HEAD_BYTES + 1);
  if (body.byteLength > MAX_KEPT_BYTES) encoder = newEncoder();
  let checksum = checksumOf(record.subarray(HEAD_BYTES, at));
  let stepBytes = 0;
  for (const part of parts) {
    for (let from = 0; from < part.byteLength; from += MAX_STEP_BYTES) {
      // A small part is passed as the same object, because its checksum may be remembered.
      const piece = part.byteLength <= MAX_STEP_BYTES ? part : part.subarray(from, from + MAX_STEP_BYTES);
      record.set(piece, at);
      at += piece.byteLength;
      checksum = checksumWith(checksum, piece);
      stepBytes += piece.byteLength;
      if (stepBytes < MAX_STEP_BYTES) continue;
      stepBytes = 0;
      yield;
    }
  }
  record.writeUInt32LE(checksum, 1);
  return record;
}

/** MessagePack of empty bytes, and the first byte of bytes whose length takes four bytes. */
const EMPTY_BYTES = [0xc4, 0] as const;
const BYTES_32 = 0xc6;
const BYTES_HEAD_BYTES = 5;
const NO_BYTES = new Uint8Array();
/** How many bytes are copied in one step. */
const MAX_STEP_BYTES = 256 * 1024;

/**
 * Returns the large byte string among a value's members, and a copy of the value. In the copy that member is empty
 * and comes last.
 */
function largeMemberOf(value: object): { readonly bytes: Uint8Array; readonly rest: unknown } | undefined {
  if (Array.isArray(value)) return undefined;
  if (value instanceof Uint8Array)
    return value.byteLength > MAX_KEPT_BYTES ? { bytes: value, rest: NO_BYTES } : undefined;
  for (const [name, member] of Object.entries(value)) {
    if (!(member instanceof Uint8Array) || member.byteLength <= MAX_KEPT_BYTES) continue;
    const { [name]: bytes, ...others } = value as Record<string, unknown>;
    return { bytes: member, rest: { ...others, [name]: NO_BYTES } };
  }
  return undefined;
}

function newEncoder(): Encoder {
  return new Encoder({ ignoreUndefined: true });
}

/**
 * One encoder for all records, because each encoder has a buffer as large as the largest record
 * that it has encoded.
 */
let encoder = newEncoder();
const MAX_KEPT_BYTES = 256 * 1024;

/** A record that was encoded before, because encoding takes long. */
export interface EncodedRecord<T> {
  readonly kind: RecordKind<T>;
  readonly bytes: Uint8Array;
}

/** The bytes of a stored record are not those that were written. */
export class DamagedRecord extends Error {
  constructor(kind: string, why: string, cause?: unknown) {
    super(`A stored ${kind} is damaged: ${why}.`, cause === undefined ? undefined : { cause });
    this.name = 'DamagedRecord';
  }
}

/**
 * Returns the value in its current form. Throws `DamagedRecord` when it is not a record, and an error when a newer release
 * wrote it.
 */
export function decodeRecord<T>(kind: RecordKind<T>, bytes: Uint8Array): T {
  const envelope = decodeBytes(kind, bytes);
  if (!Array.isArray(envelope) || typeof envelope[0] !== 'number') {
    throw new DamagedRecord(kind.name, 'it has no version');
  }
  const [version, value] = envelope as [number, unknown];
  if (version === kind.version) return value as T;
  if (version < kind.version && kind.upgrade) return kind.upgrade(value, version);
  throw new Error(`A stored ${kind.name} has version ${version}; this release reads up to ${kind.version}.`);
}

function decodeBytes({ name }: { readonly name: string }, bytes: Uint8Array): unknown {
  const { buffer, byteOffset, byteLength } = bytes;
  if (bytes[0] !== CHECKED || byteLength < HEAD_BYTES) throw new DamagedRecord(name, 'it has no checksum');
  // Not `subarray`, because on a Buffer it returns a Buffer, and then every byte string in the
  // record would be a Buffer.
  const body = new Uint8Array(buffer, byteOffset + HEAD_BYTES, byteLength - HEAD_BYTES);
  const written = new DataView(buffer, byteOffset).getUint32(1, true);
  if (written !== checksumOf(body)) throw new DamagedRecord(name, 'its checksum differs');
  try {
    return decode(body);
  } catch (cause) {
    throw new DamagedRecord(name, 'it is not MessagePack', cause);
  }
}

/** Returns the fault of a stored record of any kind; undefined when it is sound. */
export function problemOf(bytes: Uint8Array): string | undefined {
  try {
    decodeRecord({ name: 'record', version: Number.MAX_SAFE_INTEGER, upgrade: (value) => value }, bytes);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
