import { AppError } from '#src/base/errors/errors.ts';
import type { WireResponse } from '../wire-exchange.ts';
import { noRoomForBody } from './body-memory.ts';

/**
 * How many bytes of a body beyond its limit are read and discarded. Many clients send the whole body before they read the reply: if
 * the connection ended before, they would see a network error instead of the 413.
 */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;

/** Returns whether a body of this length is read to its end, so that its sender sees the 413. */
export function isDiscarded(lengthBytes: number, limitBytes: number): boolean {
  return lengthBytes <= limitBytes + MAX_DISCARDED_BYTES;
}

/**
 * The largest allowed length of a body, the length that its client announces (0 when the client announces none), and its memory.
 */
export interface BodyLimits {
  readonly limitBytes: number;
  readonly announcedBytes: number;
  /** Charges the memory of a piece of a body that does not come at once. Returns false when there is no room. */
  readonly charge: (bytes: number) => boolean;
}

/**
 * Reads the body and calls `done` once: with the whole body, or with `body_too_large` or `unavailable` at the end of the body or at
 * the point where reading stops. `isEnd` says whether the body was read to its end. Never calls `done` when the client leaves first.
 */
export function readBody(
  res: WireResponse,
  { limitBytes, announcedBytes, charge }: BodyLimits,
  done: (body: Buffer | AppError, isEnd: boolean) => void,
): void {
  let whole: Buffer | undefined;
  let size = 0;
  let isDone = false;
  let refusal: AppError | undefined;
  res.onData((chunk, isLast) => {
    if (isDone) return;
    const from = size;
    size += chunk.byteLength;
    const isAtOnce = isLast && from === 0;
    if (size > limitBytes) refusal = bodyTooLarge(limitBytes);
    else if (refusal === undefined && !isAtOnce && !charge(chunk.byteLength)) refusal = noRoomForBody();
    if (refusal !== undefined) {
      whole = undefined;
      isDone = isLast || !isDiscarded(size, limitBytes);
      if (isDone) done(refusal, isLast);
      return;
    }
    // Copied, because uWebSockets.js uses the memory of the chunk again after this callback.
    const bytes = new Uint8Array(chunk);
    if (isAtOnce) {
      isDone = true;
      done(Buffer.from(bytes), true);
      return;
    }
    whole = withRoom(whole, from, Math.max(size, announcedBytes), limitBytes);
    whole.set(bytes, from);
    if (!isLast) return;
    isDone = true;
    done(whole.subarray(0, size), true);
  });
}

/**
 * Returns a buffer with the first `used` bytes of `whole` and room for `bytes` in total. If the client has announced the
 * length, the buffer gets this size at once, so that no turn copies the whole body. The system allocates its memory only when
 * bytes are written.
 */
function withRoom(whole: Buffer | undefined, used: number, bytes: number, limitBytes: number): Buffer {
  if (whole !== undefined && whole.byteLength >= bytes) return whole;
  const wanted = whole === undefined ? bytes : Math.max(bytes, 2 * whole.byteLength);
  const larger = Buffer.allocUnsafeSlow(Math.min(wanted, limitBytes));
  if (whole !== undefined) larger.set(whole.subarray(0, used));
  return larger;
}

/** Returns the error for a body of more than `limitBytes`. */
export function bodyTooLarge(limitBytes: number): AppError {
  return new AppError('body_too_large', `The body may have at most ${limitBytes} bytes.`);
}
