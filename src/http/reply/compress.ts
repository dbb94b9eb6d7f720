/**
 * Compresses large answers for callers that accept gzip. Small answers fit into a packet or two and are not compressed.
 */
import { constants, gzip } from 'node:zlib';
import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { compressedTag } from './entity-tag.ts';
import type { BytesReply, EmptyReply, SharedForms } from './reply.ts';

/** A smaller answer is sent faster without compression. */
export const MIN_COMPRESSED_BYTES = 8 * 1024;
/** A larger body is sent uncompressed, in pieces, because a compressed copy would take additional memory. */
const MAX_COMPRESSED_BYTES = 32 * 1024 * 1024;
/** At any level, JSON of this API shrinks to a tenth. The highest levels take several times as long. */
const LEVEL = constants.Z_BEST_SPEED + 3;

const COMPRESSIBLE = /^(?:text\/|application\/(?:[\w.+-]*json|javascript|xml)\b|image\/svg\+xml)/;

/**
 * Returns whether `Accept-Encoding` may decide which bytes are sent, now or when the content has grown. Content that can be
 * requested in ranges is never compressed, because a range counts the bytes of the uncompressed body.
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
 * Compression takes half of the thread pool at most, and a quarter for the answers of one workspace, because commits and files need
 * threads as well. One answer of 32 MiB takes half a second.
 */
const PLACES = new FairSemaphore({ width: 2, widthOfKey: 1, queueOfKey: 64 });
/** A larger answer does not wait for a place, because its bytes would stay in memory during the wait. */
const MAX_WAITING_BYTES = 256 * 1024;
/** The key, in `PLACES`, of answers that belong to no workspace, such as files of the front end. */
const EVERYBODY = '';

/**
 * Resolves with the answer, compressed on another thread. If the answer has an entity tag, the compressed form gets a tag of its
 * own. An answer that cannot be compressed soon stays uncompressed. `workspaceId` is the workspace of the caller.
 */
export async function compress(reply: BytesReply, workspaceId = EVERYBODY): Promise<BytesReply> {
  const bytes = await (reply.shared === undefined
    ? compressedSoon(reply.bytes, workspaceId)
    : compressedOnce(reply.bytes, reply.shared));
  if (bytes === undefined) return reply;
  const { etag } = reply.headers ?? {};
  const tag = etag === undefined ? {} : { etag: compressedTag(etag) };
  return { ...reply, bytes, headers: { ...reply.headers, ...tag, 'content-encoding': 'gzip' } };
}

async function compressedSoon(
  bytes: Uint8Array | string,
  workspaceId: string,
): Promise<Uint8Array | undefined> {
  if (bytes.length > MAX_WAITING_BYTES && !PLACES.hasRoom(workspaceId)) return undefined;
  // Rejects when too many wait.
  return PLACES.pass(workspaceId, () => gzipped(bytes)).catch(() => undefined);
}

/** Compresses a document that many clients read. The result is kept, because otherwise repeated requests could keep threads busy. */
function compressedOnce(bytes: Uint8Array | string, shared: SharedForms): Promise<Uint8Array | undefined> {
  shared.gzip ??= PLACES.pass(EVERYBODY, () => gzipped(bytes)).catch(() => {
    shared.gzip = undefined; // too many wait
    return undefined;
  });
  return shared.gzip;
}

/** Resolves with undefined when the bytes cannot be compressed. */
function gzipped(bytes: Uint8Array | string): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    gzip(bytes, { level: LEVEL }, (error, compressed) => resolve(error === null ? compressed : undefined));
  });
}
