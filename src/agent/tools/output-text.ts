/** Outputs of cells as a model reads them: tables and HTML as text, pictures as pictures. */
import { readHtml } from './html-text.ts';
import type { ToolImage } from './tool.ts';

export interface TypedValue {
  readonly mimetype: string;
  readonly data: unknown;
}

export interface ShownOutput {
  readonly text: string;
  readonly images: readonly ToolImage[];
}

const BUNDLE = 'application/vnd.marimo+mimebundle';
/** What of a bundle says most, in this order. */
const PREFERRED = ['image/png', 'image/jpeg', 'text/markdown', 'text/plain', 'application/json', 'text/html'];
const SEEN = /^image\/(png|jpeg|gif|webp)$/;
/** Pictures within HTML, as data URLs. */
const EMBEDDED = /data:image\/[\w.+-]{1,40};base64,[^"'\\\s<>&]*/gi;
/** What replaces such a picture while the HTML is read; the number says which picture it was. */
const PLACEHOLDER = /^data:image;(\d{1,9})$/;
const IMAGE_LIMIT_BYTES = 3 * 1024 * 1024;

export function shownOutput({ mimetype, data }: TypedValue): ShownOutput {
  if (mimetype === BUNDLE) return shownBundle(data);
  if (mimetype === 'application/vnd.marimo+error') return plain(errorText(data));
  const text = typeof data === 'string' ? data : (JSON.stringify(data) ?? '');
  const image = imageOf(mimetype, text);
  if (image !== undefined) return image;
  if (!/html|markdown|marimo\+traceback/.test(mimetype)) return plain(text);
  return shownHtml(text);
}

function shownHtml(html: string): ShownOutput {
  // Pictures are taken out first, because they may be larger than what is read of the HTML.
  const urls: string[] = [];
  const read = readHtml(html.replace(EMBEDDED, (url) => `data:image;${urls.push(url) - 1}`));
  const shown = read.pictures.flatMap((source) => {
    const url = urls[Number(PLACEHOLDER.exec(source)?.[1])];
    return url === undefined ? [] : (imageOf('', url) ?? []);
  });
  return {
    text: [read.text, ...shown.map(({ text }) => text)].filter(Boolean).join('\n'),
    images: shown.flatMap(({ images }) => images),
  };
}

/** Returns marimo's errors, one on each line. */
export function errorText(data: unknown): string {
  if (!Array.isArray(data)) return 'The cell failed.';
  return data
    .map((error: unknown) => {
      const { type, msg, exception_type } = {
        type: 'error',
        msg: '',
        exception_type: undefined,
        ...Object(error),
      };
      const kind: unknown = exception_type ?? type;
      return `${String(kind)}${msg === '' || msg === null ? '' : `: ${String(msg)}`}`;
    })
    .join('\n');
}

function shownBundle(data: unknown): ShownOutput {
  let bundle: unknown = data;
  try {
    if (typeof data === 'string') bundle = JSON.parse(data);
  } catch {
    return plain(String(data)); // shown as it came
  }
  const values = new Map<string, unknown>(Object.entries(Object(bundle)));
  const type =
    PREFERRED.find((known) => values.has(known)) ?? [...values.keys()].find((key) => key.includes('/'));
  return type === undefined ? plain('') : shownOutput({ mimetype: type, data: values.get(type) });
}

function imageOf(mimetype: string, text: string): ShownOutput | undefined {
  const [, type = '', base64] = /^data:([^;,]+);base64,(.*)$/s.exec(text) ?? [];
  if (base64 === undefined) return undefined;
  const bytes = Buffer.from(base64, 'base64');
  if (!SEEN.test(type)) return plain(`[${type || mimetype}, ${bytes.byteLength} bytes]`);
  if (bytes.byteLength > IMAGE_LIMIT_BYTES)
    return plain(`[an image of ${bytes.byteLength} bytes, too large]`);
  return { text: `[${type}]`, images: [{ mimetype: type, bytes }] };
}

function plain(text: string): ShownOutput {
  return { text, images: [] };
}
