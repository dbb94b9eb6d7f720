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
 * False for a request whose end is not beyond doubt: two lengths, a length that is no number, or a transfer coding
 * other than `chunked`. A proxy in front may see another end, so the connection cannot be trusted further.
 */
export function isFramingSound(req: HttpRequest): boolean {
  const length = req.getHeader('content-length');
  const coding = req.getHeader('transfer-encoding');
  if (length === '' && coding === '') return true;
  if (coding !== '' && (coding.toLowerCase() !== 'chunked' || length !== '')) return false;
  if (length !== '' && !/^\d{1,15}$/.test(length)) return false;
  return countHeaders(req, 'content-length') + countHeaders(req, 'transfer-encoding') === 1;
}

/** How often a header was sent. An empty one, or one that is not UTF-8, reads like one that is absent. */
export function countHeaders(req: HttpRequest, wanted: string): number {
  let count = 0;
  req.forEach((name) => {
    if (name === wanted) count++;
  });
  return count;
}
