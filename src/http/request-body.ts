import type { HttpResponse } from 'uWebSockets.js';
import { AppError } from '#src/core/errors.ts';

/**
 * What is read, and thrown away, of a body beyond its limit. Many clients send all of it before they look for an answer: a
 * connection that ends under them is an error of the network to them, and the answer is lost.
 */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;

/** Whether a body of this length is let through to its end, so that its sender sees the answer. */
export function isDiscarded(lengthBytes: number, limitBytes: number): boolean {
  return lengthBytes <= limitBytes + MAX_DISCARDED_BYTES;
}

/**
 * Collects the body and calls `done` once: with the whole body, or with `body_too_large` at its end or where no more of it
 * is read. Not at all when the client leaves first. The bytes are only valid during the call.
 */
export function readBody(
  res: HttpResponse,
  limitBytes: number,
  done: (body: Buffer | AppError, isEnd: boolean) => void,
): void {
  let chunks: Buffer[] = [];
  let size = 0;
  let settled = false;
  res.onData((chunk, isLast) => {
    if (settled) return;
    size += chunk.byteLength;
    if (size > limitBytes) {
      chunks = [];
      settled = isLast || !isDiscarded(size, limitBytes);
      if (settled) done(bodyTooLarge(limitBytes), isLast);
      return;
    }
    if (isLast) {
      settled = true;
      const last = Buffer.from(chunk);
      done(chunks.length === 0 ? last : Buffer.concat([...chunks, last]), true);
      return;
    }
    // The chunk's memory is reused after this callback.
    chunks.push(Buffer.from(chunk.slice(0)));
  });
}

export function bodyTooLarge(limitBytes: number): AppError {
  return new AppError('body_too_large', `The body may have at most ${limitBytes} bytes.`);
}
