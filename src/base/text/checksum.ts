/**
 * CRC-32 of bytes, as in zlib. Node.js has it since 20.15 and 22.2; for older versions it is computed here, some ten times slower.
 */
import * as zlib from 'node:zlib';

const POLYNOMIAL = 0xedb88320;
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = (rest & 1) === 0 ? rest >>> 1 : (rest >>> 1) ^ POLYNOMIAL;
  return rest;
});

/** Returns the checksum of bytes without the function of Node.js. `before` is the checksum of the preceding bytes. */
export function computeChecksum(bytes: Uint8Array, before = 0): number {
  let rest = before ^ 0xffff_ffff;
  for (const byte of bytes) rest = TABLE[(rest ^ byte) & 0xff]! ^ (rest >>> 8);
  return (rest ^ 0xffff_ffff) >>> 0;
}

type Checksum = (bytes: Uint8Array, before?: number) => number;

const { crc32 }: { crc32?: Checksum } = { ...zlib };

/**
 * Returns the checksum of bytes, a number of 32 bits. Given the checksum `before` of the preceding
 * bytes, returns the checksum of both together.
 */
export const checksumOf: Checksum = crc32 ?? computeChecksum;

/** Checksums of bytes that several records will contain, and that never change. */
const known = new WeakMap<Uint8Array, number>();

/** Computes the checksum of bytes that never change, so that `checksumWith` does not read them. */
export function rememberChecksum(bytes: Uint8Array): void {
  known.set(bytes, checksumOf(bytes));
}

/**
 * Returns the checksum of two byte strings, one after the other: `before` is the checksum of the
 * first.
 */
export function checksumWith(before: number, bytes: Uint8Array): number {
  const own = known.get(bytes);
  return own === undefined ? checksumOf(bytes, before) : joinedChecksum(before, own, bytes.byteLength);
}

/**
 * Returns the checksum of two byte strings, one after the other, from the checksum of each and the
 * length of the second. A CRC is the remainder of a division of polynomials over GF(2). In the
 * joined string, the first one is followed by as many bits as the second has, so its remainder is
 * multiplied by the remainder of x^bits.
 */
function joinedChecksum(first: number, second: number, secondBytes: number): number {
  return (product(first, shiftBy(secondBytes)) ^ second) >>> 0;
}

/** Polynomials are stored with the coefficient of x^0 in the highest bit. */
const ONE = 0x8000_0000;

/** The remainder of x^(8 · 2^i), for each i. */
const SHIFTS: readonly number[] = (() => {
  const shifts = [ONE >>> 8];
  while (shifts.length < 32) shifts.push(product(shifts.at(-1)!, shifts.at(-1)!));
  return shifts;
})();

/** Returns the remainder of x^(8 · bytes). */
function shiftBy(bytes: number): number {
  let shift = ONE;
  for (let i = 0, rest = bytes; rest > 0; i++, rest = Math.floor(rest / 2))
    if (rest % 2 === 1) shift = product(shift, SHIFTS[i]!);
  return shift;
}

/** Returns the product of two polynomials, modulo the polynomial of the checksum. */
function product(one: number, other: number): number {
  let sum = 0;
  let shifted = other;
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((one & bit) !== 0) sum ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ POLYNOMIAL;
  }
  return sum >>> 0;
}
