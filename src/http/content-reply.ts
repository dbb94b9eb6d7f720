/** Answers with content of known hash: whole, one range of it, or that the caller has it already. */
import { AppError } from '#src/core/errors.ts';
import { parseByteRange } from './byte-range.ts';
import { type Reply, raw } from './reply.ts';

/** The request headers that are honoured, for a route to name. */
export const CONTENT_HEADERS = {
  'if-none-match': 'The entity tag of what the caller has; while it is current the answer is 304.',
  range: 'One range of bytes. Of several, the whole is sent.',
  'if-range': 'An entity tag: the range counts only while it is current.',
} as const;

export interface Content {
  readonly bytes: Uint8Array;
  readonly sha256: string;
  readonly contentType: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Throws `range_not_satisfiable`. A range counts for a GET only. */
export function contentReply(
  { bytes, sha256, contentType, headers }: Content,
  asked: Readonly<Record<keyof typeof CONTENT_HEADERS, string>>,
  headOnly: boolean,
): Reply {
  const etag = `"${sha256}"`;
  const described = { ...headers, etag, 'accept-ranges': 'bytes' };
  if (isKnown(asked['if-none-match'], etag)) return { kind: 'empty', status: 304, headers: described };
  const counts = !headOnly && (asked['if-range'] === '' || asked['if-range'] === etag);
  const size = bytes.byteLength;
  const range = counts ? parseByteRange(asked.range, size) : 'whole';
  if (range === 'whole') return raw(contentType, bytes, described);
  if (range === 'unsatisfiable') {
    throw new AppError('range_not_satisfiable', `There are ${size} bytes.`, {
      headers: { 'content-range': `bytes */${size}` },
    });
  }
  const { first, last } = range;
  const headersOfPart = { ...described, 'content-range': `bytes ${first}-${last}/${size}` };
  return raw(contentType, bytes.subarray(first, last + 1), headersOfPart, 206);
}

/** By weak comparison, as a 304 asks for. */
function isKnown(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.split(',').some((word) => {
    const tag = word.trim();
    return tag === '*' || tag === etag || tag === `W/${etag}`;
  });
}
