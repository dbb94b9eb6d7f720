/** Outputs of cells as a model reads them: tables and HTML as text, pictures as pictures. */
import { createRequire } from 'node:module';
import { type Grid, gridOf } from '#src/contract/outputs/grid.ts';
import { htmlText } from '#src/contract/outputs/html-text.ts';
import { representationFor, type ShownValue } from '#src/contract/outputs/representation.ts';
import type { ToolImage } from './tool.ts';

/** Loads the HTML parser for the first HTML: it has thirty files, which the start need not wait for. */
const require = createRequire(import.meta.url);

export interface ShownOutput {
  readonly text: string;
  readonly images: readonly ToolImage[];
}

/** The most HTML of an output that is read. Parsing this much blocks the event loop for some ten milliseconds. */
export const MAX_HTML_CHARS = 256 * 1024;
/** The most characters of a table that is converted; a model gets fewer. */
const MAX_TABLE_CHARS = 64 * 1024;
const IMAGE_LIMIT_BYTES = 3 * 1024 * 1024;
/** The pictures that models see. */
const SEEN = /^image\/(png|jpeg|gif|webp)$/;
/** Pictures within HTML, as data URLs. */
const EMBEDDED = /data:image\/[\w.+-]{1,40};base64,[^"'\\\s<>&]*/gi;
/** The placeholder for a picture while the HTML is read; its number identifies the picture. */
const PLACEHOLDER = /^data:image;(\d{1,9})$/;
const HTML = new Set(['text/html', 'text/markdown', 'application/vnd.marimo+traceback']);

/** Returns the text of an output, and the pictures in it. */
export function shownOutput(value: ShownValue): ShownOutput {
  // The server's text has no pictures, so HTML with pictures is read instead.
  const { text, ...rest } = value;
  const shown = representationFor(hasPictures(value) ? rest : value, 'model');
  if (shown.kind === 'table') return plain(tableText(gridOf(shown.table)));
  if (shown.kind !== 'data') return plain(shown.text);
  const { mimetype, data } = shown;
  const content = typeof data === 'string' ? data : (JSON.stringify(data) ?? '');
  return imageOf(mimetype, content) ?? (HTML.has(mimetype) ? shownHtml(content) : plain(content));
}

function hasPictures({ mimetype, data }: ShownValue): boolean {
  return HTML.has(mimetype) && typeof data === 'string' && data.search(EMBEDDED) !== -1;
}

function shownHtml(html: string): ShownOutput {
  // Pictures are taken out first, because they may be longer than the part of the HTML that is read.
  const urls: string[] = [];
  const images: ToolImage[] = [];
  const short = html.replace(EMBEDDED, (url) => `data:image;${urls.push(url) - 1}`);
  const text = htmlText(short, require('htmlparser2'), {
    table: tableText,
    embedded: (source, mimetype) => {
      const image = imageOf('', urls[Number(PLACEHOLDER.exec(source)?.[1])] ?? '');
      if (image === undefined) return `[${mimetype ?? mimetypeOf(source)}]`;
      images.push(...image.images);
      return image.text;
    },
    page: () => '[page]',
    maxChars: MAX_HTML_CHARS,
  });
  return { text, images };
}

/** Returns a table with bars between its cells. */
function tableText({ headings, rows, moreRows = 0, moreColumns = 0 }: Grid): string {
  const lines = headings.map(rowText);
  let length = 0;
  for (const row of rows) {
    const line = rowText(row);
    length += line.length + 1;
    if (length > MAX_TABLE_CHARS) break;
    lines.push(line);
  }
  const shown = lines.length - headings.length;
  const total = rows.length + moreRows;
  const notes = [
    ...(total > shown ? [`${shown} of ${total} rows`] : []),
    ...(moreColumns > 0 ? [`${moreColumns} more columns`] : []),
  ];
  return [...lines, ...(notes.length > 0 ? [`[${notes.join(', ')}]`] : [])].join('\n');
}

function rowText(row: readonly string[]): string {
  return row
    .map((cell) => cell.replace(/\s+/g, ' ').trim())
    .join(' | ')
    .trimEnd();
}

function mimetypeOf(dataUrl: string): string {
  return /^data:([\w.+-]{1,40}\/[\w.+-]{1,80})/.exec(dataUrl)?.[1] ?? 'file';
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
