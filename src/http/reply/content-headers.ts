/** The headers that give a browser the type of a downloaded body and say whether to show or save it. */

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
 * Returns the headers for content whose media type was named by untrusted code. A type that is not of the form `type/subtype`
 * becomes an unknown type, so that it can neither end the header nor add parameters. Only passive types are shown in the browser.
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

/** Media types by the ending of a file's name. Files with other endings are sent as bytes of an unknown type. */
const TYPES_OF_ENDINGS: Readonly<Record<string, string>> = {
  avif: 'image/avif',
  css: 'text/css',
  csv: 'text/csv',
  gif: 'image/gif',
  gz: 'application/gzip',
  htm: 'text/html',
  html: 'text/html',
  ipynb: 'application/x-ipynb+json',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  js: 'text/javascript',
  json: 'application/json',
  jsonl: 'application/x-ndjson',
  log: 'text/plain',
  md: 'text/markdown',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  parquet: 'application/vnd.apache.parquet',
  pdf: 'application/pdf',
  png: 'image/png',
  py: 'text/x-python',
  svg: 'image/svg+xml',
  toml: 'application/toml',
  tsv: 'text/tab-separated-values',
  txt: 'text/plain',
  wav: 'audio/wav',
  webp: 'image/webp',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xml: 'application/xml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  zip: 'application/zip',
};

/** Returns the headers for a file whose name and content are untrusted. */
export function describeFile(name: string): ReturnType<typeof describeUntrusted> {
  return describeUntrusted(mediaTypeOf(name) ?? UNKNOWN_TYPE);
}

/** Returns the media type of a file by the ending of its name; undefined for an unknown ending. */
export function mediaTypeOf(name: string): string | undefined {
  const ending = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? '';
  return Object.hasOwn(TYPES_OF_ENDINGS, ending) ? TYPES_OF_ENDINGS[ending] : undefined;
}

/**
 * Returns a `Content-Disposition` that saves the body as `fileName`, which may be any text. The header has the name twice: as
 * quoted ASCII for old clients, with `_` for other characters, and in full (RFC 5987).
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
