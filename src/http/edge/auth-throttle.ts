/**
 * Slows down clients that guess access tokens. Wrong tokens are counted for each client address in a leaky bucket that
 * loses one per second: the first 50 get the usual 401, further ones get 429 with a growing `retry-after`. A valid token
 * is never delayed, whatever came from its address before.
 *
 * The throttle remembers at most 10,000 addresses and forgets those first whose last wrong token is the oldest.
 */
import { AppError } from '#src/core/errors.ts';
import { parseAddress } from '#src/core/ip-address.ts';

const MAX_FREE_ATTEMPTS = 50;
const MAX_WAIT_S = 60;
const MAX_ADDRESSES = 10_000;

interface Bucket {
  readonly level: number;
  readonly atS: number;
}

export class AuthThrottle {
  readonly #nowS: () => number;
  readonly #buckets = new Map<string, Bucket>();

  /** `nowS` returns seconds of a clock that never goes back. */
  constructor(nowS: () => number = () => performance.now() / 1000) {
    this.#nowS = nowS;
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /**
   * Counts a wrong token from `address`, an IP address as text, and returns the error to answer with: `refusal`, or
   * `too_many_attempts` once the address has used up its free attempts.
   */
  recordFailure(address: string, refusal: AppError): AppError {
    const key = networkOf(address);
    const atS = this.#nowS();
    const last = this.#buckets.get(key);
    const left = last === undefined ? 0 : Math.max(0, last.level - (atS - last.atS));
    const level = Math.min(left + 1, MAX_FREE_ATTEMPTS + MAX_WAIT_S);
    this.#buckets.delete(key); // A map keeps insertion order: this makes the bucket the newest.
    this.#buckets.set(key, { level, atS });
    if (this.#buckets.size > MAX_ADDRESSES) {
      for (const oldest of this.#buckets.keys()) {
        this.#buckets.delete(oldest);
        break;
      }
    }
    if (level <= MAX_FREE_ATTEMPTS) return refusal;
    return new AppError('too_many_attempts', 'Too many wrong access tokens came from your address.', {
      headers: { 'retry-after': String(Math.ceil(level - MAX_FREE_ATTEMPTS)) },
    });
  }
}

/** Returns the IPv4 address, or the first 64 bits of an IPv6 address: one client usually owns all of the rest. */
function networkOf(address: string): string {
  return parseAddress(address)?.bytes.slice(0, 8).join('.') ?? '';
}
