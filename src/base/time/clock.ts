/** A wall-clock time as the API shows it: RFC 3339, UTC, with milliseconds. */
export type IsoTime = string;

/**
 * The last time that was written as a text. All apps of the process share it, because a time has one text.
 */
let lastMs = 0;
let lastText = timestampOf(lastMs);

/** Returns the time `ms` milliseconds after 1970. Times are asked for in bursts, so the last text is kept. */
export function timestamp(ms: number = Date.now()): IsoTime {
  if (ms !== lastMs) {
    lastText = timestampOf(ms);
    lastMs = ms;
  }
  return lastText;
}

function timestampOf(ms: number): IsoTime {
  return new Date(ms).toISOString();
}

/** Returns the present, but at least one millisecond after `previous`, so that the times of a record only increase. */
export function timestampAfter(previous: IsoTime | undefined): IsoTime {
  const now = Date.now();
  const floor = previous === undefined ? 0 : Date.parse(previous) + 1;
  return timestamp(Math.max(now, floor));
}

const RFC_3339 = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)$/;

/**
 * Returns whether two RFC 3339 times are the same instant, in any offset and with any number of digits. Digits after
 * the milliseconds count, unless they are zeros.
 */
export function isSameInstant(one: string, other: string): boolean {
  const [a, b] = [instantOf(one), instantOf(other)];
  return a !== undefined && b !== undefined && a.seconds === b.seconds && a.fraction === b.fraction;
}

/** Returns whole seconds and the digits of the fraction; undefined for a text that is not a time of the calendar. */
function instantOf(text: string): { readonly seconds: number; readonly fraction: string } | undefined {
  const [, date, time, digits = '', offset] = RFC_3339.exec(text) ?? [];
  const ms = Date.parse(`${date}T${time}${offset?.toUpperCase()}`);
  return Number.isNaN(ms) ? undefined : { seconds: ms / 1000, fraction: digits.replace(/(?<!0)0+$/, '') };
}
