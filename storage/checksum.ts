/** CRC-32 of bytes, as in zlib. Node.js has it since 20.15 and 22.2; before, it is computed here, some ten times slower. */
import * as zlib from 'node:zlib';

const POLYNOMIAL = 0xedb88320;
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = (rest & 1) === 0 ? rest >>> 1 : (rest >>> 1) ^ POLYNOMIAL;
  return rest;
});

/** Returns the checksum without the function of Node.js. */
export function computeChecksum(bytes: Uint8Array): number {
  let rest = 0xffff_ffff;
  for (const byte of bytes) rest = TABLE[(rest ^ byte) & 0xff]! ^ (rest >>> 8);
  return (rest ^ 0xffff_ffff) >>> 0;
}

const { crc32 }: { crc32?: (bytes: Uint8Array) => number } = { ...zlib };

/** Returns the checksum, a number of 32 bits. */
export const checksumOf: (bytes: Uint8Array) => number = crc32 ?? computeChecksum;
