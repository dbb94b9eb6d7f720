const UNKNOWN = 'application/octet-stream';
const RESTRICTED_NAMES = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/;

/** What a browser shows without running anything. Never a document type, and no image type that can hold script. */
const PASSIVE: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
  'text/plain',
]);

/**
 * How content is sent whose type somebody else has named: `type/subtype` or nothing, so that it can neither end the
 * header nor bring parameters, and shown in place only when it is passive.
 */
export function describeForeign(mimetype: string): {
  readonly contentType: string;
  readonly disposition: 'inline' | 'attachment';
} {
  const lower = mimetype.toLowerCase();
  const type = RESTRICTED_NAMES.test(lower) ? lower : UNKNOWN;
  return {
    contentType: type.startsWith('text/') ? `${type}; charset=utf-8` : type,
    disposition: PASSIVE.has(type) ? 'inline' : 'attachment',
  };
}
