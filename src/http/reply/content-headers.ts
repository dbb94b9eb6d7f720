/** The headers that tell a browser what a downloaded body is and whether to show or save it. */

const UNKNOWN_TYPE = 'application/octet-stream';
const MEDIA_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/;

/** Types that a browser shows without running anything. Documents and SVG can hold scripts and are never among them. */
const PASSIVE_TYPES: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
  'text/plain',
]);

/**
 * Returns the headers for content whose media type was named by untrusted code. The type is `type/subtype` or unknown,
 * so that it can neither end the header nor add parameters; only passive types are shown in the browser.
 */
export function describeUntrusted(mimetype: string): {
  readonly contentType: string;
  readonly disposition: 'inline' | 'attachment';
} {
  const lower = mimetype.toLowerCase();
  const type = MEDIA_TYPE.test(lower) ? lower : UNKNOWN_TYPE;
  return {
    contentType: type.startsWith('text/') ? `${type}; charset=utf-8` : type,
    disposition: PASSIVE_TYPES.has(type) ? 'inline' : 'attachment',
  };
}

/**
 * Returns a `Content-Disposition` that saves the body as `fileName`, which may be any text: once as quoted ASCII for old
 * clients, with `_` for other characters, and once in full (RFC 5987).
 */
export function attachment(fileName: string): string {
  const ascii = fileName
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\x20-\x7e]|["\\%]/gu, '_');
  const encoded = encodeURIComponent(fileName.replace(/\p{Surrogate}/gu, '_')).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}
