const SPECIAL: Readonly<Record<string, string>> = { etag: 'ETag', 'last-event-id': 'Last-Event-ID' };

/** Returns a header's usual spelling, such as `Content-Range` for `content-range`. */
export function usualHeaderName(name: string): string {
  return SPECIAL[name] ?? name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
}
