/** CRC-32 of bytes, as in zlib. Node.js has it since 20.15 and 22.2; before, it is computed here, some ten times slower. */
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
 * Returns the checksum of bytes, a number of 32 bits; given the checksum of the preceding bytes, the checksum of all of
 * them.
 */
export const checksumOf: Checksum = crc32 ?? computeChecksum;
