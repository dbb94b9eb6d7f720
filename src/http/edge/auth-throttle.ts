/**
 * Slows down clients that guess access tokens. Wrong tokens are counted for each client address in a leaky bucket that loses one
 * per second: the first 50 get the usual 401, further ones get 429 with a growing `retry-after`. A valid token is never delayed,
 * however many wrong ones came from its address. Requests that need no token are counted likewise, by limits of their own.
 *
 * The throttle remembers at most 10,000 addresses and first forgets those whose last wrong token is the oldest. Each worker
 * counts for itself, and allows its share of the limit.
 */
import { AppError } from '#src/base/errors/errors.ts';
import { networkOf } from '#src/base/net/ip-address.ts';

/** The number of attempts that a throttle allows one address. */
export interface ThrottleLimits {
  /** Attempts at once. */
  readonly free: number;
  /** Further attempts each second. */
  readonly perS: number;
  readonly refusal: string;
}

const WRONG_TOKENS: ThrottleLimits = {
  free: 50,
  perS: 1,
  refusal: 'Too many wrong access tokens came from your address.',
};
const MAX_WAIT_S = 60;
const MAX_ADDRESSES = 10_000;

interface Bucket {
  readonly level: number;
  readonly atS: number;
}

export class AuthThrottle {
  readonly #nowS: () => number;
  readonly #buckets = new Map<string, Bucket>();
  readonly #workers: number;
  readonly #limits: ThrottleLimits;
  readonly #maxFreeAttempts: number;

  /** `nowS` returns seconds of a clock that never goes back. Each of `workers` processes has its own throttle. */
  constructor(nowS: () => number = () => performance.now() / 1000, workers = 1, limits = WRONG_TOKENS) {
    this.#nowS = nowS;
    this.#workers = workers;
    this.#limits = limits;
    this.#maxFreeAttempts = Math.max(1, Math.floor(limits.free / workers));
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
    return this.#add(address) ?? refusal;
  }

  /** Counts a request that needs no token. Throws `too_many_attempts` once its address has used up its free attempts. */
  count(address: string): void {
    const refusal = this.#add(address);
    if (refusal !== undefined) throw refusal;
  }

  /** Counts an attempt, and returns its refusal when there were too many. */
  #add(address: string): AppError | undefined {
    const { perS, refusal } = this.#limits;
    const key = networkOf(address);
    const atS = this.#nowS();
    const last = this.#buckets.get(key);
    const lost = last === undefined ? 0 : ((atS - last.atS) * perS) / this.#workers;
    const left = last === undefined ? 0 : Math.max(0, last.level - lost);
    const level = Math.min(left + 1, this.#maxFreeAttempts + (MAX_WAIT_S * perS) / this.#workers);
    this.#buckets.delete(key); // A map keeps insertion order: this makes the bucket the newest.
    this.#buckets.set(key, { level, atS });
    if (this.#buckets.size > MAX_ADDRESSES) {
      for (const oldest of this.#buckets.keys()) {
        this.#buckets.delete(oldest);
        break;
      }
    }
    if (level <= this.#maxFreeAttempts) return undefined;
    const waitS = Math.ceil(((level - this.#maxFreeAttempts) * this.#workers) / perS);
    return new AppError('too_many_attempts', refusal, { headers: { 'retry-after': String(waitS) } });
  }
}
