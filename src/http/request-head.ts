/** Reading what stands before the body. Everything is copied: the request is gone once its callback returns. */
import type { HttpRequest } from 'uWebSockets.js';
import { AppError } from '#src/core/errors.ts';
import { parseIdempotencyKey } from './idempotency.ts';

/** The parameters of the path, percent-decoded. */
export function copyParams(req: HttpRequest, names: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {};
  for (let i = 0; i < names.length; i++) {
    const text = req.getParameter(i);
    params[names[i]!] = text.includes('%') ? decode(text) : text;
  }
  return params;
}

/** A path segment that cannot be decoded stays as it is, and is then no plausible id. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Throws `invalid_request` for a key that is there but not usable; undefined when there is none. */
export function readIdempotencyKey(req: HttpRequest): string | undefined {
  const count = countHeaders(req, 'idempotency-key');
  if (count === 0) return undefined;
  return parseIdempotencyKey(count === 1 ? req.getHeader('idempotency-key') : '');
}

export function copyHeaders(req: HttpRequest, names: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of names) headers[name] = req.getHeader(name);
  return headers;
}

/** Whether a body follows, by the headers. */
export function announcesBody(req: HttpRequest): boolean {
  const length = req.getHeader('content-length');
  return (length !== '' && length !== '0') || req.getHeader('transfer-encoding') !== '';
}

/** Throws `unsupported_media_type` unless the body is said to be JSON in UTF-8. */
export function requireJson(contentType: string): void {
  if (contentType === 'application/json') return;
  if (/^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?;?$/i.test(contentType)) return;
  throw new AppError('unsupported_media_type', 'Send the body as application/json in UTF-8.');
}

/**
 * How the end of a request is said. `unsound`: two lengths, a length that is no number, or a transfer coding other than
 * `chunked`; a proxy in front may see another end. `chunked`: uWebSockets.js takes line ends in a chunked body that a proxy
 * may take for something else. Behind neither the connection can be trusted further.
 */
export function framingOf(req: HttpRequest): 'plain' | 'chunked' | 'unsound' {
  const length = req.getHeader('content-length');
  const coding = req.getHeader('transfer-encoding');
  if (length === '' && coding === '') {
    const isBare = req.getMethod() === 'get' || countHeaders(req, 'content-length') === 0;
    return isBare ? 'plain' : 'unsound'; // an empty length reads like none
  }
  if (coding !== '' && (coding.toLowerCase() !== 'chunked' || length !== '')) return 'unsound';
  if (length !== '' && !/^\d{1,15}$/.test(length)) return 'unsound';
  if (countHeaders(req, 'content-length') + countHeaders(req, 'transfer-encoding') !== 1) return 'unsound';
  return coding === '' ? 'plain' : 'chunked';
}

/** Throws when it is unsound. */
export function requireFraming(framing: ReturnType<typeof framingOf>): void {
  if (framing === 'unsound')
    throw new AppError('invalid_request', 'Where the request ends is not clear from its headers.');
}

/** How often a header was sent. An empty one, or one that is not UTF-8, reads like one that is absent. */
export function countHeaders(req: HttpRequest, wanted: string): number {
  let count = 0;
  req.forEach((name) => {
    if (name === wanted) count++;
  });
  return count;
}
