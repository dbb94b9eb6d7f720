import { AppError } from '#src/core/errors.ts';
import type { WireResponse } from '../wire-exchange.ts';

/**
 * How much of a body beyond its limit is read and discarded. Many clients send the whole body before they read the
 * reply: if the connection ended meanwhile, they would see a network error instead of the 413.
 */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;

/** Returns whether a body of this length is read to its end, so that its sender sees the 413. */
export function isDiscarded(lengthBytes: number, limitBytes: number): boolean {
  return lengthBytes <= limitBytes + MAX_DISCARDED_BYTES;
}

/**
 * Reads the body and calls `done` once: with the whole body, or with `body_too_large` at the end of the body or at the
 * point where reading stops. `isEnd` says whether the body was read to its end. Never calls `done` when the client
 * leaves first. The bytes are valid only during the call.
 */
export function readBody(
  res: WireResponse,
  limitBytes: number,
  done: (body: Buffer | AppError, isEnd: boolean) => void,
): void {
  let chunks: Buffer[] = [];
  let size = 0;
  let isDone = false;
  res.onData((chunk, isLast) => {
    if (isDone) return;
    size += chunk.byteLength;
    if (size > limitBytes) {
      chunks = [];
      isDone = isLast || !isDiscarded(size, limitBytes);
      if (isDone) done(bodyTooLarge(limitBytes), isLast);
      return;
    }
    if (isLast) {
      isDone = true;
      const last = Buffer.from(chunk);
      done(chunks.length === 0 ? last : Buffer.concat([...chunks, last]), true);
      return;
    }
    // uWebSockets.js reuses the memory of the chunk after this callback.
    chunks.push(Buffer.from(chunk.slice(0)));
  });
}

/** Returns the error for a body of more than `limitBytes`. */
export function bodyTooLarge(limitBytes: number): AppError {
  return new AppError('body_too_large', `The body may have at most ${limitBytes} bytes.`);
}
