/** Wall-clock time as the API shows it: RFC 3339, UTC, milliseconds. */
export type Timestamp = string;

export function timestamp(ms: number = Date.now()): Timestamp {
  return new Date(ms).toISOString();
}

/** The present, or one millisecond past `previous` when the clock has not moved on: strictly increasing per record. */
export function timestampAfter(previous: Timestamp | undefined): Timestamp {
  const now = Date.now();
  const floor = previous === undefined ? 0 : Date.parse(previous) + 1;
  return timestamp(Math.max(now, floor));
}
