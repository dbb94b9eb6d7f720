import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { AppError } from '#src/core/errors.ts';

/**
 * Collects the body and calls `done` once: with the whole body, or with `body_too_large` as soon as it is known. Not at
 * all when the client leaves first. The bytes are only valid during the call.
 */
export function readBody(
  res: HttpResponse,
  limitBytes: number,
  done: (body: Buffer | AppError) => void,
): void {
  let chunks: Buffer[] = [];
  let size = 0;
  let settled = false;
  res.onData((chunk, isLast) => {
    if (settled) return;
    size += chunk.byteLength;
    if (size > limitBytes) {
      settled = true;
      chunks = [];
      done(bodyTooLarge(limitBytes));
      return;
    }
    if (isLast) {
      settled = true;
      const last = Buffer.from(chunk);
      done(chunks.length === 0 ? last : Buffer.concat([...chunks, last]));
      return;
    }
    // The chunk's memory is reused after this callback.
    chunks.push(Buffer.from(chunk.slice(0)));
  });
}

export function bodyTooLarge(limitBytes: number): AppError {
  return new AppError('body_too_large', `The body may have at most ${limitBytes} bytes.`);
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
