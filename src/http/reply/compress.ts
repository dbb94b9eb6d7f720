/**
 * Compresses large answers for callers that ask for it. Small ones are not compressed, because they
 * fit into a packet or two.
 */
import { constants, gzip } from 'node:zlib';
import { compressedTag } from './entity-tag.ts';
import type { BytesReply, EmptyReply } from './reply.ts';

/** A smaller answer is sent faster without compression. */
export const MIN_COMPRESSED_BYTES = 8 * 1024;
/** A larger body is sent uncompressed, in pieces, because a compressed copy would take additional memory. */
const MAX_COMPRESSED_BYTES = 32 * 1024 * 1024;
/**
 * JSON of this API shrinks to a tenth at any level, and the highest levels take several times as
 * long.
 */
const LEVEL = constants.Z_BEST_SPEED + 3;

const COMPRESSIBLE = /^(?:text\/|application\/(?:[\w.+-]*json|javascript|xml)\b|image\/svg\+xml)/;

/**
 * Returns whether `Accept-Encoding` may decide which bytes are sent, now or when the content has
 * grown. It may not for content that can be requested in ranges, because a range counts the bytes
 * of the uncompressed body.
 */
export function variesByEncoding(reply: BytesReply | EmptyReply): boolean {
  if (reply.headers?.['accept-ranges'] !== undefined) return false;
  if (reply.kind === 'empty') return reply.status === 304;
  return reply.contentType === 'application/json' || COMPRESSIBLE.test(reply.contentType);
}

/** Returns whether the answer is worth compressing. */
export function isCompressible(reply: BytesReply | EmptyReply): reply is BytesReply {
  if (reply.kind !== 'bytes') return false;
  const { length } = reply.bytes;
  return length >= MIN_COMPRESSED_BYTES && length <= MAX_COMPRESSED_BYTES && variesByEncoding(reply);
}

/** Returns whether an `Accept-Encoding` header asks for gzip (RFC 9110, 12.5.3). */
export function acceptsGzip(header: string): boolean {
  let others = false;
  for (const part of header.toLowerCase().split(',')) {
    const [coding = '', ...parameters] = part.split(';').map((word) => word.trim());
    const isRefused = parameters.some((parameter) => /^q\s*=\s*0(?:\.0*)?$/.test(parameter));
    if (coding === 'gzip' || coding === 'x-gzip') return !isRefused;
    if (coding === '*') others = !isRefused;
  }
  return others;
}

/**
 * Resolves with the compressed answer, made on another thread, and with an entity tag of its own if it has one. An answer
 * that cannot be compressed stays as it is.
 */
export function compress(reply: BytesReply): Promise<BytesReply> {
  return new Promise((resolve) => {
    gzip(reply.bytes, { level: LEVEL }, (error, bytes) => {
      if (error !== null) return resolve(reply);
      const { etag } = reply.headers ?? {};
      const tag = etag === undefined ? {} : { etag: compressedTag(etag) };
      resolve({ ...reply, bytes, headers: { ...reply.headers, ...tag, 'content-encoding': 'gzip' } });
    });
  });
}
