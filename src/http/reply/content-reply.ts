/** Replies with content whose hash is known: all of it, one range of it, or 304 when the caller already has it. */
import { AppError } from '#src/core/errors.ts';
import { type BytesReply, type EmptyReply, raw } from './reply.ts';

/** The request headers that `contentReply` reads, with their documentation, for a route to declare. */
export const CONTENT_HEADERS = {
  'if-none-match': 'Entity tags of what the caller has. The reply is 304 when one of them is current.',
  range: 'One range of bytes. The whole content is sent when several are requested.',
  'if-range': 'An entity tag. The range is ignored unless the tag is current.',
} as const;

export interface Content {
  readonly bytes: Uint8Array;
  readonly sha256: string;
  readonly contentType: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A range of bytes, both ends included. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** Returns the reply to a GET or, without honouring ranges, to a HEAD. Throws `range_not_satisfiable`. */
export function contentReply(
  { bytes, sha256, contentType, headers }: Content,
  requested: Readonly<Record<keyof typeof CONTENT_HEADERS, string>>,
  headOnly: boolean,
): BytesReply | EmptyReply {
  const etag = `"${sha256}"`;
  const described = { ...headers, etag, 'accept-ranges': 'bytes' };
  if (matches(requested['if-none-match'], etag)) return { kind: 'empty', status: 304, headers: described };
  const honoursRange = !headOnly && (requested['if-range'] === '' || requested['if-range'] === etag);
  const size = bytes.byteLength;
  const range = honoursRange ? parseByteRange(requested.range, size) : 'whole';
  if (range === 'whole') return raw(contentType, bytes, described);
  if (range === 'unsatisfiable') {
    throw new AppError('range_not_satisfiable', `There are ${size} bytes.`, {
      headers: { 'content-range': `bytes */${size}` },
    });
  }
  const { first, last } = range;
  const partHeaders = { ...described, 'content-range': `bytes ${first}-${last}/${size}` };
  return raw(contentType, bytes.subarray(first, last + 1), partHeaders, 206);
}

/**
 * Returns the range that a `Range` header requests of `size` bytes. `whole`: the header is empty, malformed or requests
 * several ranges, all of which are answered with the whole content. `unsatisfiable`: the range contains no byte.
 */
export function parseByteRange(header: string, size: number): ByteRange | 'whole' | 'unsatisfiable' {
  const match = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header);
  const [, from = '', to = ''] = match ?? [];
  if (from === '' && to === '') return 'whole';
  if (from === '') return lastBytes(Number(to), size);
  const first = Number(from);
  const last = to === '' ? Number.POSITIVE_INFINITY : Number(to);
  if (last < first) return 'whole';
  return first < size ? { first, last: Math.min(last, size - 1) } : 'unsatisfiable';
}

function lastBytes(length: number, size: number): ByteRange | 'unsatisfiable' {
  if (length === 0 || size === 0) return 'unsatisfiable';
  return { first: Math.max(0, size - length), last: size - 1 };
}

/** Compares entity tags weakly, as RFC 9110 requires for `If-None-Match`. */
function matches(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.split(',').some((word) => {
    const tag = word.trim();
    return tag === '*' || tag === etag || tag === `W/${etag}`;
  });
}
