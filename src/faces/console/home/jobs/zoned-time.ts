/** Times in a named time zone, which need not be that of the browser. */

/** The time zone of the browser. */
export const OWN_TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The names of all time zones that the browser knows. */
export function timeZones(): readonly string[] {
  return ['UTC', ...Intl.supportedValuesOf('timeZone')];
}

/** Returns a format in the time zone; in UTC if the browser does not know the time zone. */
function formatIn(
  timeZone: string,
  locale: string,
  options: Intl.DateTimeFormatOptions,
): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat(locale, { ...options, timeZone });
  } catch {
    return new Intl.DateTimeFormat(locale, { ...options, timeZone: 'UTC' });
  }
}

/** Returns an instant with its date, time and offset, such as `Mon, 7 Dec 2026, 07:00 CET`. Seconds are shown unless they are 0. */
export function zonedText(timestamp: string, timeZone: string): string {
  const time = new Date(timestamp);
  return formatIn(timeZone, 'en-GB', {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    ...(time.getUTCSeconds() === 0 ? {} : { second: '2-digit' }),
    timeZoneName: 'short',
  }).format(time);
}

/** Returns the local date and time of an instant, such as `2026-12-07T07:00`, the form of a field for both. */
export function localTimeOf(ms: number, timeZone: string): string {
  // Sweden writes dates and times in this form, with a blank between them.
  const format = formatIn(timeZone, 'sv-SE', { dateStyle: 'short', timeStyle: 'short' });
  return format.format(ms).replace(' ', 'T');
}

/** Returns the instant of a local time in the time zone; undefined for a text that is not a time. */
export function instantOf(local: string, timeZone: string): string | undefined {
  const wantedMs = Date.parse(`${local}Z`);
  if (Number.isNaN(wantedMs)) return undefined;
  const offsetMs = (ms: number) => Date.parse(`${localTimeOf(ms, timeZone)}Z`) - ms;
  const nearMs = wantedMs - offsetMs(wantedMs);
  // Around a change of the clocks, the offset at the result counts.
  return new Date(wantedMs - offsetMs(nearMs)).toISOString();
}
