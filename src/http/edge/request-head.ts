/**
 * Reads the head of a request: parameters, query and headers. Everything is copied, because uWebSockets.js reuses the request
 * after its callback.
 */

import { randomBytes } from 'node:crypto';
import { AppError } from '#src/base/errors/errors.ts';
import { parseIdempotencyKey } from '../idempotency/idempotency.ts';
import type { openEndOf } from '../route.ts';
import type { WireRequest } from '../wire-exchange.ts';

const MAX_REQUEST_ID_CHARACTERS = 128;
const processId = randomBytes(6).toString('hex');
/** The last two digits of request ids. A number is converted to text once for all ids that differ in these only. */
const LAST_DIGITS = Array.from({ length: 36 ** 2 }, (_, n) => n.toString(36).padStart(2, '0'));
/** All apps of the process share this state, because two requests of one process never have the same id. */
let requestCount = 0;
let firstDigits = '';

/**
 * Returns the caller's `X-Request-Id` when it consists of 1 to 128 characters of `[A-Za-z0-9._-]`,
 * otherwise a new id.
 */
export function requestIdFor(header: string): string {
  if (header !== '' && header.length <= MAX_REQUEST_ID_CHARACTERS && /^[A-Za-z0-9._-]+$/.test(header))
    return header;
  const last = requestCount % LAST_DIGITS.length;
  if (last === 0)
    firstDigits = `req_${processId}${Math.floor(requestCount / LAST_DIGITS.length).toString(36)}`;
  requestCount++;
  return firstDigits + LAST_DIGITS[last]!;
}

/** Returns the parameters of the path, percent-decoded. `openEnd` is the parameter that takes the whole rest of the path. */
export function copyParams(
  req: WireRequest,
  names: readonly string[],
  openEnd: ReturnType<typeof openEndOf>,
): Record<string, string> {
  const params: Record<string, string> = {};
  for (let i = 0; i < names.length; i++) {
    const isOpen = openEnd !== undefined && names[i] === openEnd.name;
    const text = isOpen ? restOf(req.getUrl(), openEnd.before) : req.getParameter(i)!;
    // An id never contains a `%`, so an undecodable id is kept, and matches nothing. A file's name may contain a `%`, so an
    // undecodable path becomes empty, which matches nothing.
    params[names[i]!] = text.includes('%') ? (decode(text) ?? (isOpen ? '' : text)) : text;
  }
  return params;
}

/** Returns the part of a path that comes after as many slashes as the pattern `before` has. */
function restOf(path: string, before: string): string {
  let at = 0;
  for (let slashes = before.split('/').length - 1; slashes > 0; slashes--) at = path.indexOf('/', at) + 1;
  return path.slice(at);
}

/** Returns undefined for a text that cannot be decoded. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Returns undefined when there is no key. Throws `invalid_request` for an invalid key or for two keys. */
export function readIdempotencyKey(req: WireRequest, { idempotencyKeys }: HeaderCounts): string | undefined {
  if (idempotencyKeys === 0) return undefined;
  return parseIdempotencyKey(idempotencyKeys === 1 ? req.getHeader('idempotency-key') : '');
}

/** Returns the named headers; one that is missing is the empty string. */
export function copyHeaders(req: WireRequest, names: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of names) {
    const value = req.getHeader(name);
    headers[name] = value !== '' && LISTS.has(name) ? joinLines(req, name) : value;
  }
  return headers;
}

/** Headers whose value is a list, so that it may be sent in several lines (RFC 9110, section 5.3). */
const LISTS: ReadonlySet<string> = new Set(['if-match', 'if-none-match']);

function joinLines(req: WireRequest, wanted: string): string {
  const lines: string[] = [];
  req.forEach((name, value) => {
    if (name === wanted) lines.push(value);
  });
  return lines.join(', ');
}

/** Returns whether the headers announce a body. */
export function announcesBody(req: WireRequest): boolean {
  const length = req.getHeader('content-length');
  return (length !== '' && length !== '0') || req.getHeader('transfer-encoding') !== '';
}

/** Throws `unsupported_media_type` unless the content type is JSON in UTF-8. */
export function requireJson(contentType: string): void {
  if (contentType === 'application/json') return;
  if (/^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?;?$/i.test(contentType)) return;
  throw new AppError('unsupported_media_type', 'Send the body as application/json in UTF-8.');
}

/** How the end of a request is marked. Only after `plain` can the connection be used for another request. */
export type Framing = 'plain' | 'chunked' | 'unsound';

/**
 * Returns how the end of the request is marked. `unsound`: two lengths, a length that is not a number, or a transfer coding other
 * than `chunked`, so that a proxy in front may see another end than we do (request smuggling). `chunked`: uWebSockets.js accepts
 * line ends in a chunked body that a proxy may read differently. Counts the headers if necessary, unless `counted` has the counts.
 */
export function framingOf(req: WireRequest, counted?: HeaderCounts): Framing {
  const length = req.getHeader('content-length');
  const coding = req.getHeader('transfer-encoding');
  if (length === '' && coding === '') {
    // A header with an empty value reads like a missing one. Most requests are GETs, for which the count would cost too much.
    if (req.getMethod() === 'get') return 'plain';
    const { contentLengths, transferEncodings } = counted ?? countHeaders(req);
    return contentLengths + transferEncodings === 0 ? 'plain' : 'unsound';
  }
  if (coding !== '' && (coding.toLowerCase() !== 'chunked' || length !== '')) return 'unsound';
  if (length !== '' && !/^\d{1,15}$/.test(length)) return 'unsound';
  const { contentLengths, transferEncodings } = counted ?? countHeaders(req);
  if (contentLengths + transferEncodings !== 1) return 'unsound';
  return coding === '' ? 'plain' : 'chunked';
}

/** Throws `invalid_request` for an unsound framing. */
export function requireSoundFraming(framing: Framing): void {
  if (framing === 'unsound')
    throw new AppError(
      'invalid_request',
      'The headers of the request do not say clearly how long its body is.',
    );
}

/** How often each header was sent that may be sent only once. */
export interface HeaderCounts {
  readonly contentLengths: number;
  readonly transferEncodings: number;
  readonly idempotencyKeys: number;
}

/** Counts headers. `getHeader` cannot tell an empty or non-UTF-8 header from a missing one. */
export function countHeaders(req: WireRequest): HeaderCounts {
  const counts = { contentLengths: 0, transferEncodings: 0, idempotencyKeys: 0 };
  req.forEach((name) => {
    if (name === 'content-length') counts.contentLengths++;
    else if (name === 'transfer-encoding') counts.transferEncodings++;
    else if (name === 'idempotency-key') counts.idempotencyKeys++;
  });
  return counts;
}
