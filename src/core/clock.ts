/** A wall-clock time as the API shows it: RFC 3339, UTC, with milliseconds. */
export type Timestamp = string;

/** Returns the time `ms` milliseconds after 1970. */
export function timestamp(ms: number = Date.now()): Timestamp {
  return new Date(ms).toISOString();
}

/** Returns the present, but at least one millisecond after `previous`, so that the times of a record only increase. */
export function timestampAfter(previous: Timestamp | undefined): Timestamp {
  const now = Date.now();
  const floor = previous === undefined ? 0 : Date.parse(previous) + 1;
  return timestamp(Math.max(now, floor));
}
