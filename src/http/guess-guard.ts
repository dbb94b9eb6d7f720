/**
 * Slows down whoever tries tokens. Wrong ones are counted by address, in a bucket that leaks one a second: a few dozen
 * may come at once, then each adds to a time for which more of them are answered 429. A good token is never asked to
 * wait, whatever came from its address before. At most ADDRESSES are remembered; the ones heard of longest ago go first.
 */
import { AppError } from '#src/core/errors.ts';

const FREE = 50;
const LONGEST_WAIT_S = 60;
const ADDRESSES = 10_000;

interface Bucket {
  readonly level: number;
  readonly atS: number;
}

export class GuessGuard {
  readonly #nowS: () => number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(nowS: () => number = () => performance.now() / 1000) {
    this.#nowS = nowS;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** What to answer to a wrong token from this address: `refusal`, or that it is one too many. */
  judge(address: Uint8Array, refusal: AppError): AppError {
    const key = networkOf(address);
    const atS = this.#nowS();
    const last = this.#buckets.get(key);
    const left = last === undefined ? 0 : Math.max(0, last.level - (atS - last.atS));
    const level = Math.min(left + 1, FREE + LONGEST_WAIT_S);
    this.#buckets.delete(key); // so that it becomes the newest
    this.#buckets.set(key, { level, atS });
    if (this.#buckets.size > ADDRESSES) {
      for (const oldest of this.#buckets.keys()) {
        this.#buckets.delete(oldest);
        break;
      }
    }
    if (level <= FREE) return refusal;
    return new AppError('too_many_attempts', 'Too many wrong access tokens came from your address.', {
      headers: { 'retry-after': String(Math.ceil(level - FREE)) },
    });
  }
}

/** Who can have many addresses of IPv6 has all of the lower half. */
function networkOf(address: Uint8Array): string {
  const bytes = Buffer.from(address);
  const isMapped = bytes.length === 16 && bytes.subarray(0, 12).toString('hex') === MAPPED;
  return (isMapped ? bytes.subarray(12) : bytes.subarray(0, 8)).toString('hex');
}

const MAPPED = '00000000000000000000ffff';
