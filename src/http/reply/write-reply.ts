/**
 * Writes a reply to its response. A small body is written at once, a large one as fast as the client reads. A large body is not
 * copied, and other requests are served in between.
 */

import { STATUS_CODES } from 'node:http';
import { inSlices } from '#src/base/async/slices.ts';
import { joinedJson } from '#src/base/json/json-write.ts';
import type { WireResponse } from '../wire-exchange.ts';
import { variesByEncoding } from './compress.ts';
import type { BytesReply, EmptyReply, JsonReply, PlainReply } from './reply.ts';

/** A reply whose body is bytes or nothing: ready to be written or stored. */
export type EncodedReply = BytesReply | EmptyReply;

/** The headers that every answer has. */
export interface ReplyStamp {
  readonly requestId: string;
  /** The origin whose pages may read the answer; empty for none. Undefined when the server allows no other origins at all. */
  readonly allowedOrigin: string | undefined;
}

export interface WriteOptions extends ReplyStamp {
  /** Whether the request was HEAD: then the length of the body is sent, but not the body. */
  readonly headOnly: boolean;
  /** Whether the connection ends with this reply, if the reply has a body. After a large body, the client has to end the connection. */
  readonly close: boolean;
}

const JSON_TYPE = 'application/json';

/** The largest body that is written at once. For larger bodies, the copy of unsent bytes in uWebSockets.js costs more than waiting. */
export const MAX_WHOLE_BODY_BYTES = 256 * 1024;

/** The headers of every reply that does not set these headers itself. An API serves no pages, so nothing may be loaded or framed. */
const GENERAL_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

/** The request headers that decide which bytes are sent, as the value of `vary`. */
const VARY = {
  nothing: undefined,
  encoding: 'accept-encoding',
  origin: 'origin',
  both: 'accept-encoding, origin',
} as const;
type Varying = keyof typeof VARY;

type Blocks = Readonly<Record<Varying, string>>;

/**
 * The general headers and `vary` as the value of one `writeHeader`, which saves up to five calls into native code for each
 * reply.
 */
const GENERAL_BLOCKS = blocksWith({});
/** `GENERAL_BLOCKS` with the media type of JSON. */
const JSON_BLOCKS = blocksWith({ 'content-type': JSON_TYPE });
/** `GENERAL_BLOCKS` with the headers of replies that are sent more than once: see `prepareHeaders`. */
const preparedBlocks = new WeakMap<Readonly<Record<string, string>>, Blocks>();

/** The headers of answers that a page may read in addition to those that browsers always show to pages. */
const EXPOSED_HEADERS =
  'content-disposition, content-range, etag, idempotency-replayed, location, retry-after, x-request-id';

const STATUS_LINES = new Map(
  Object.entries(STATUS_CODES).map(([code, text]) => [Number(code), `${code} ${text}`]),
);

/** Returns the reply with its body encoded. Throws when the value cannot be JSON. */
export function encodeReply(reply: PlainReply): EncodedReply {
  if (reply.kind !== 'json') return reply;
  const { status, value, headers } = reply;
  const bytes = JSON.stringify(value);
  return {
    kind: 'bytes',
    status,
    contentType: 'application/json',
    bytes,
    ...(headers === undefined ? {} : { headers }),
  };
}

/** Resolves with the reply with its body encoded. The value must not change meanwhile. `workspaceId` is the workspace of the caller. */
export async function encodeInSlices(
  { value, ...reply }: JsonReply,
  workspaceId: string | undefined,
): Promise<BytesReply> {
  const bytes = await inSlices(joinedJson(value), workspaceId);
  return { ...reply, kind: 'bytes', contentType: 'application/json', bytes };
}

/** Returns the headers of a JSON reply in a form that is written faster, for a reply that is kept and sent many times. */
export function prepareHeaders(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const prepared = Object.freeze({ ...headers });
  if (Object.keys(headers).some((name) => Object.hasOwn(GENERAL_HEADERS, name))) return prepared;
  const encoded = Object.entries(headers).map(([name, value]) => [name, headerValue(value)]);
  preparedBlocks.set(prepared, blocksWith({ ...Object.fromEntries(encoded), 'content-type': JSON_TYPE }));
  return prepared;
}

/**
 * Writes the status and headers of a reply whose body follows. `isEncodingChosen` says whether the bytes depend on the request's
 * `Accept-Encoding`. Without `contentType`, the caller writes that header. The caller corks.
 */
export function writeHead(
  res: WireResponse,
  status: number,
  { requestId, allowedOrigin }: ReplyStamp,
  headers: Readonly<Record<string, string>> | undefined,
  isEncodingChosen = false,
  contentType?: string,
): void {
  const variesByOrigin = allowedOrigin !== undefined;
  const varying: Varying = isEncodingChosen
    ? variesByOrigin
      ? 'both'
      : 'encoding'
    : variesByOrigin
      ? 'origin'
      : 'nothing';
  if (status !== 200) res.writeStatus(STATUS_LINES.get(status) ?? String(status));
  res.writeHeader('x-request-id', requestId);
  if (allowedOrigin !== undefined && allowedOrigin !== '') writeAllowedOrigin(res, allowedOrigin);
  const isJson = contentType === JSON_TYPE;
  const prepared = isJson && headers !== undefined ? preparedBlocks.get(headers) : undefined;
  if (prepared !== undefined) {
    res.writeHeader('cache-control', prepared[varying]);
    return;
  }
  let overridesGeneral = false;
  for (const name in headers) {
    res.writeHeader(name, headerValue(headers[name]!));
    if (Object.hasOwn(GENERAL_HEADERS, name)) overridesGeneral = true;
  }
  if (!overridesGeneral) res.writeHeader('cache-control', (isJson ? JSON_BLOCKS : GENERAL_BLOCKS)[varying]);
  else writeGeneralExcept(res, headers ?? {}, VARY[varying]);
  if (contentType !== undefined && (!isJson || overridesGeneral))
    res.writeHeader('content-type', contentType);
}

/** Writes the whole reply and ends the response. The caller corks. */
export function writeWhole(res: WireResponse, reply: EncodedReply, options: WriteOptions): void {
  const contentType = reply.kind === 'bytes' ? reply.contentType : undefined;
  writeHead(res, reply.status, options, reply.headers, variesByEncoding(reply), contentType);
  if (reply.kind === 'empty') {
    // Answers with these two statuses end with their headers (RFC 9112, 6.3). After any other status without a length, a client
    // waits for the end of the connection.
    if (reply.status === 204 || reply.status === 304) res.endWithoutBody();
    else res.end('', options.close);
    return;
  }
  if (options.headOnly) {
    // The length is written as a header: with the length as its argument, endWithoutBody of uWebSockets.js 20 leaves the response
    // unfinished.
    res.writeHeader('content-length', String(Buffer.byteLength(reply.bytes)));
    res.endWithoutBody();
    return;
  }
  res.end(reply.bytes, options.close);
}

/**
 * Writes a large reply as fast as the client reads, and calls `done` after the last byte was handed over. If the client leaves
 * first, only the abort handler of `res` is called.
 */
export function writeInPieces(
  res: WireResponse,
  reply: BytesReply,
  { close, ...stamp }: WriteOptions,
  done: () => void,
): void {
  const { status, headers, contentType, bytes } = reply;
  const body = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
  const offer = (offset: number): boolean => {
    const [accepted, isOver] = res.tryEnd(body.subarray(offset), body.byteLength);
    if (isOver) done();
    return accepted;
  };
  res.onWritable(offer);
  res.cork(() => {
    writeHead(res, status, stamp, headers, variesByEncoding(reply), contentType);
    // uWebSockets.js ends a connection only after a body that it gets as a whole, and then keeps the unsent
    // part of the body. After `Connection: close`, no proxy sends another request. If further bytes have
    // already come, the connection has already ended.
    if (close) res.writeHeader('connection', 'close');
    offer(0);
  });
}

/** Returns the general headers and further headers as one value of `cache-control`, for each variant of `vary`. */
function blocksWith(headers: Readonly<Record<string, string>>): Blocks {
  const block = (varying: Varying) => {
    const vary = VARY[varying];
    return Object.entries({ ...GENERAL_HEADERS, ...(vary === undefined ? {} : { vary }), ...headers })
      .map(([name, value]) => `${name}: ${value}`)
      .join('\r\n')
      .slice('cache-control: '.length);
  };
  return {
    nothing: block('nothing'),
    encoding: block('encoding'),
    origin: block('origin'),
    both: block('both'),
  };
}

function writeAllowedOrigin(res: WireResponse, origin: string): void {
  res.writeHeader('access-control-allow-origin', origin);
  res.writeHeader('access-control-expose-headers', EXPOSED_HEADERS);
}

function writeGeneralExcept(
  res: WireResponse,
  headers: Readonly<Record<string, string>>,
  vary: string | undefined,
): void {
  if (vary !== undefined) res.writeHeader('vary', vary);
  for (const [name, value] of Object.entries(GENERAL_HEADERS)) {
    if (!Object.hasOwn(headers, name)) res.writeHeader(name, value);
  }
}

/** Returns the value with everything encoded that could end the header early or is not ASCII. */
function headerValue(value: string): string {
  return /^[\x20-\x7e\t]*$/.test(value) ? value : encodeURI(value.replace(/\p{Surrogate}/gu, '\ufffd'));
}
