/** Reads numbers, dates and times from the text that PostgreSQL sends. A text in any other form gives `NOTHING`. */

/** Stands for a text that cannot be read. The one float that equals it is treated like such a text. */
export const NOTHING = Number.MAX_VALUE;

const [MINUS, PLUS, POINT, COLON, BLANK, ZERO] = [0x2d, 0x2b, 0x2e, 0x3a, 0x20, 0x30];
/** Numbers with so many digits are exact as JavaScript numbers. */
const EXACT_DIGITS = 15;
const MAX_INT64_CHARS = 20;
const [MIN_INT64, MAX_INT64] = [-(2n ** 63n), 2n ** 63n - 1n];

/** Returns the whole number; a bigint where a number would not be exact. */
export function readInteger(bytes: Buffer, start: number, end: number): number | bigint {
  const isNegative = bytes[start] === MINUS;
  const first = isNegative ? start + 1 : start;
  if (end <= first) return NOTHING;
  let value = 0;
  for (let at = first; at < end; at++) {
    const digit = bytes[at]! - ZERO;
    if (digit < 0 || digit > 9) return NOTHING;
    value = value * 10 + digit;
  }
  if (end - first <= EXACT_DIGITS) return isNegative ? -value : value;
  if (end - start > MAX_INT64_CHARS) return NOTHING;
  const exact = BigInt(bytes.toString('latin1', start, end));
  return exact < MIN_INT64 || exact > MAX_INT64 ? NOTHING : exact;
}

/** Exact as floats up to the 22nd, so dividing an exact number by one of them rounds only once. */
const POWERS = Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);
const FLOAT = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** No float of PostgreSQL has as many characters. */
const MAX_FLOAT_CHARS = 64;

/** Returns the float that is closest to the text. */
export function readFloat(bytes: Buffer, start: number, end: number): number {
  const isNegative = bytes[start] === MINUS;
  const first = isNegative ? start + 1 : start;
  let value = 0;
  let point = -1;
  let at = first;
  for (; at < end; at++) {
    const digit = bytes[at]! - ZERO;
    if (digit >= 0 && digit <= 9) value = value * 10 + digit;
    else if (bytes[at] === POINT && point < 0 && at > first) point = at;
    else break;
  }
  const decimals = point < 0 ? 0 : end - point - 1;
  const isExact = at === end && end > first && end - first <= EXACT_DIGITS && point !== end - 1;
  if (!isExact) return readRareFloat(bytes, start, end);
  const size = decimals === 0 ? value : value / POWERS[decimals]!;
  return isNegative ? -size : size;
}

function readRareFloat(bytes: Buffer, start: number, end: number): number {
  if (end - start > MAX_FLOAT_CHARS) return NOTHING;
  const text = bytes.toString('latin1', start, end);
  if (FLOAT.test(text)) {
    const value = Number(text);
    return Number.isFinite(value) ? value : NOTHING;
  }
  if (text === 'NaN') return Number.NaN;
  if (text === 'Infinity') return Number.POSITIVE_INFINITY;
  return text === '-Infinity' ? Number.NEGATIVE_INFINITY : NOTHING;
}

const DAYS_BEFORE_1970 = 719_468;
const DAYS_OF_ERA = 146_097;

/** Returns the days since 1970-01-01 of `YYYY-MM-DD`, which begins at `start`. The year is 1 to 9999. */
export function readDate(bytes: Buffer, start: number): number {
  if (bytes[start + 4] !== MINUS || bytes[start + 7] !== MINUS) return NOTHING;
  const year = two(bytes, start) * 100 + two(bytes, start + 2);
  const month = two(bytes, start + 5);
  const day = two(bytes, start + 8);
  // A comparison with NaN is false, so these also refuse characters that are not digits.
  if (!(year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysOf(year, month))) return NOTHING;
  // Counted in eras of 400 years that begin on a first of March, so that a leap day is the last day of its year.
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * DAYS_OF_ERA + dayOfEra - DAYS_BEFORE_1970;
}

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function daysOf(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return month === 2 && isLeap ? 29 : DAYS[month - 1]!;
}

/** The microseconds of a second by the number of digits after its point. */
const MICROS = [0, 100_000, 10_000, 1000, 100, 10, 1];
const SECONDS_OF_DAY = 86_400;
const CHARS_TO_SECONDS = 19;

/**
 * Returns the microseconds since 1970 of `YYYY-MM-DD hh:mm:ss`, which up to six digits after a point may follow; a bigint where
 * a number would not be exact. `isZoned`: the time ends with `+00`. A time of another zone gives `NOTHING`.
 */
export function readMoment(bytes: Buffer, start: number, end: number, isZoned: boolean): number | bigint {
  const last = isZoned ? end - 3 : end;
  if (last - start < CHARS_TO_SECONDS) return NOTHING;
  if (isZoned && !(bytes[last] === PLUS && two(bytes, last + 1) === 0)) return NOTHING;
  const days = readDate(bytes, start);
  if (days === NOTHING || bytes[start + 10] !== BLANK) return NOTHING;
  if (bytes[start + 13] !== COLON || bytes[start + 16] !== COLON) return NOTHING;
  const hours = two(bytes, start + 11);
  const minutes = two(bytes, start + 14);
  const seconds = two(bytes, start + 17);
  if (!(hours <= 23 && minutes <= 59 && seconds <= 59)) return NOTHING;
  const micros = readFraction(bytes, start + CHARS_TO_SECONDS, last);
  if (micros === NOTHING) return NOTHING;
  const since = days * SECONDS_OF_DAY + hours * 3600 + minutes * 60 + seconds;
  const value = since * 1_000_000 + micros;
  return Number.isSafeInteger(value) ? value : BigInt(since) * 1_000_000n + BigInt(micros);
}

/** Returns the microseconds of `.5` and the like; 0 for an empty text. */
function readFraction(bytes: Buffer, start: number, end: number): number {
  if (end === start) return 0;
  const digits = end - start - 1;
  if (bytes[start] !== POINT || digits < 1 || digits > 6) return NOTHING;
  let value = 0;
  for (let at = start + 1; at < end; at++) {
    const digit = bytes[at]! - ZERO;
    if (digit < 0 || digit > 9) return NOTHING;
    value = value * 10 + digit;
  }
  return value * MICROS[digits]!;
}

/** Returns the number of two digits; NaN when one of them is not a digit. */
function two(bytes: Buffer, at: number): number {
  const tens = bytes[at]! - ZERO;
  const ones = bytes[at + 1]! - ZERO;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}
