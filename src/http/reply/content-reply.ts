/** Replies with content whose hash is known: the whole content, one range, or 304 when the caller already has the content. */
import { AppError } from '#src/base/errors/errors.ts';
import type { CONTENT_HEADERS } from '#src/contract/wire/operations/parts.ts';
import { describeUntrusted } from './content-headers.ts';
import { isKnown } from './entity-tag.ts';
import { type BytesReply, type EmptyReply, type FileReply, raw } from './reply.ts';

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

type RequestedContent = Readonly<Record<keyof typeof CONTENT_HEADERS, string>>;

/** Returns the reply to a GET or a HEAD. For a HEAD, ranges are ignored. Throws `range_not_satisfiable`. */
function contentReply(
  { bytes, sha256, contentType, headers }: Content,
  requested: RequestedContent,
  headOnly: boolean,
): BytesReply | EmptyReply {
  const etag = `"${sha256}"`;
  const described = { ...headers, etag, 'accept-ranges': 'bytes' };
  if (isKnown(requested['if-none-match'], etag)) return { kind: 'empty', status: 304, headers: described };
  const size = bytes.byteLength;
  const range = rangeFor(requested, { etag, size }, headOnly);
  if (range === 'whole') return raw(contentType, bytes, described);
  const { first, last } = range;
  const partHeaders = { ...described, 'content-range': `bytes ${first}-${last}/${size}` };
  return raw(contentType, bytes.subarray(first, last + 1), partHeaders, 206);
}

/** Returns the reply to a GET or HEAD of an output, whose media type notebook code has chosen. Throws `range_not_satisfiable`. */
export function assetReply(
  { bytes, sha256, mimetype }: Pick<Content, 'bytes' | 'sha256'> & { readonly mimetype: string },
  requested: RequestedContent,
  headOnly: boolean,
): BytesReply | EmptyReply {
  const { contentType, disposition } = describeUntrusted(mimetype);
  const headers = {
    'content-disposition': disposition,
    'content-security-policy': "sandbox; default-src 'none'",
    // An asset never changes, but the caller may lose the right to read it.
    'cache-control': 'private, no-cache',
  };
  return contentReply({ bytes, sha256, contentType, headers }, requested, headOnly);
}

/** Content that is read while it is sent. `close` is called once. */
export type FileContent = Omit<FileReply, 'kind' | 'status'> & {
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
};

/** Returns the reply to a GET of a file, or to a HEAD. Rejects with `range_not_satisfiable`. */
export async function fileReply(
  { etag, headers, ...content }: FileContent,
  requested: RequestedContent,
  headOnly: boolean,
): Promise<FileReply | BytesReply | EmptyReply> {
  const described = { ...headers, etag, 'accept-ranges': 'bytes' };
  const { sizeBytes: size, contentType, read, close } = content;
  const body = (range: ByteRange, status: number, head: FileContent['headers']): FileReply => ({
    kind: 'file',
    status,
    contentType,
    sizeBytes: range.last - range.first + 1,
    read: (offset, length) => read(range.first + offset, length),
    close,
    headers: head,
  });
  let reply: FileReply | BytesReply | EmptyReply | undefined;
  try {
    if (isKnown(requested['if-none-match'], etag)) reply = { kind: 'empty', status: 304, headers: described };
    else if (size === 0) reply = raw(contentType, '', described);
    else {
      const range = rangeFor(requested, { etag, size }, headOnly);
      if (range === 'whole') return body({ first: 0, last: size - 1 }, 200, described);
      const part = `bytes ${range.first}-${range.last}/${size}`;
      return body(range, 206, { ...described, 'content-range': part });
    }
  } catch (error) {
    await close();
    throw error;
  }
  await close();
  return reply;
}

/** Returns the range to send; always `whole` for a HEAD. Throws `range_not_satisfiable`. */
function rangeFor(
  requested: RequestedContent,
  { etag, size }: { readonly etag: string; readonly size: number },
  headOnly: boolean,
): ByteRange | 'whole' {
  const honoursRange = !headOnly && (requested['if-range'] === '' || requested['if-range'] === etag);
  const range = honoursRange ? parseByteRange(requested.range, size) : 'whole';
  if (range !== 'unsatisfiable') return range;
  throw new AppError('range_not_satisfiable', `There are ${size} bytes.`, {
    headers: { 'content-range': `bytes */${size}` },
  });
}

/**
 * Returns the range that a `Range` header requests of `size` bytes. `whole`: the header is empty or malformed, or requests
 * several ranges, so the answer is the whole content. `unsatisfiable`: the range contains no byte.
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
