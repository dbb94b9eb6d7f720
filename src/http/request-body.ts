import type { HttpResponse } from 'uWebSockets.js';
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
