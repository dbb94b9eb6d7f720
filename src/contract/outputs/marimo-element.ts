import { type Grid, gridValueText } from './grid.ts';
import { parsePythonJson } from './python-json.ts';

/** The readable part of one of marimo's own elements. `container` means all that it contains. */
export type MarimoElement =
  | { readonly kind: 'table'; readonly grid: Grid }
  | { readonly kind: 'html'; readonly html: string }
  | { readonly kind: 'text'; readonly text: string }
  /** Data to save; `label` is their title. */
  | { readonly kind: 'file'; readonly mimetype?: string; readonly content: string; readonly label: string }
  | { readonly kind: 'container' }
  /** Shows each of its children under a label of its own. */
  | { readonly kind: 'sections'; readonly labels: readonly string[] };

type Attributes = Readonly<Record<string, string>>;

/** How many cells of a table are read. */
const MAX_CELLS = 50_000;

/** Returns the readable part of an element, whose attributes are JSON, as marimo's front end reads them. */
export function readMarimoElement(name: string, attributes: Attributes): MarimoElement {
  if (name === 'marimo-table') return { kind: 'table', grid: readTable(attributes) };
  if (name === 'marimo-json-output') {
    return { kind: 'text', text: JSON.stringify(jsonOf(attributes['data-json-data'])) };
  }
  const known = KNOWN.get(name)?.((attribute) => jsonOf(attributes[`data-${attribute}`]));
  if (known !== undefined) return known;
  const html = jsonOf(attributes['data-html']);
  if (typeof html === 'string') return { kind: 'html', html };
  if (!('data-initial-value' in attributes)) return { kind: 'container' };
  const label = jsonOf(attributes['data-label']);
  const words = typeof label === 'string' ? label.replace(/<[^<>]*>/g, '').trim() : '';
  const value = JSON.stringify(jsonOf(attributes['data-initial-value']));
  return { kind: 'text', text: `[${words === '' ? name.slice('marimo-'.length) : words}: ${value}]` };
}

type Read = (attribute: string) => unknown;

/** Elements that have text or content of their own, by name. */
const KNOWN: ReadonlyMap<string, (read: Read) => MarimoElement> = new Map<
  string,
  (read: Read) => MarimoElement
>([
  ['marimo-stat', (read) => text(statText(read))],
  ['marimo-mermaid', (read) => ({ kind: 'html', html: `<pre>${escaped(wordsOf(read('diagram')))}</pre>` })],
  ['marimo-progress', (read) => text(progressText(read))],
  ['marimo-tabs', (read) => sections(read('tabs'))],
  ['marimo-accordion', (read) => sections(read('labels'))],
  ['marimo-download', readDownload],
  ['marimo-plotly', readPlotly],
  ['marimo-anywidget', () => text('[a widget, which only a browser shows]')],
  ['marimo-panel', () => text('[a widget, which only a browser shows]')],
  ['marimo-mpl-interactive', () => text('[an interactive figure, which only a browser shows]')],
]);

function text(words: string): MarimoElement {
  return { kind: 'text', text: words };
}

function sections(labels: unknown): MarimoElement {
  return { kind: 'sections', labels: Array.isArray(labels) ? labels.map(wordsOf) : [] };
}

function statText(read: Read): string {
  const [label, value, caption] = [wordsOf(read('label')), wordsOf(read('value')), wordsOf(read('caption'))];
  return `${label === '' ? '' : `${label}: `}${value}${caption === '' ? '' : ` (${caption})`}`;
}

function progressText(read: Read): string {
  const words = [read('title'), read('subtitle')].map(wordsOf).filter(Boolean).join(' ') || 'progress';
  const progress = read('progress');
  return progress === true ? `[${words}]` : `[${words}: ${wordsOf(progress)}/${wordsOf(read('total'))}]`;
}

function readDownload(read: Read): MarimoElement {
  const label = wordsOf(read('filename')) || wordsOf(read('label')) || 'download';
  const content = read('data');
  if (typeof content !== 'string' || !content.startsWith('data:')) {
    return text(`[${label}, which is made when it is asked for in a browser]`);
  }
  return { kind: 'file', content, label };
}

/** A chart is saved as plotly's own JSON. */
function readPlotly(read: Read): MarimoElement {
  const figure = Object(read('figure'));
  const title = wordsOf(Object(Object(figure.layout).title).text);
  const content = `data:application/vnd.plotly.v1+json,${encodeURIComponent(JSON.stringify(figure))}`;
  return { kind: 'file', mimetype: 'application/vnd.plotly.v1+json', content, label: title };
}

/** Text or a number, without markup. */
function wordsOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number'
    ? String(value)
        .replace(/<[^<>]*>/g, '')
        .trim()
    : '';
}

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

function readTable(attributes: Attributes): Grid {
  const rows = readRows(jsonOf(attributes['data-data']));
  const fields = jsonOf(attributes['data-field-types']);
  const named = Array.isArray(fields)
    ? fields.map((field: unknown) => String(Array.isArray(field) ? field[0] : field))
    : [];
  const columns =
    named.length > 0 ? named : Object.keys(rows[0] ?? {}).filter((key) => key !== '_marimo_row_id');
  const headers = jsonOf(attributes['data-row-headers']);
  const indexes = Array.isArray(headers)
    ? headers
        .map((header: unknown) => String(Array.isArray(header) ? header[0] : header))
        .filter((key) => !columns.includes(key))
    : [];
  const keys = [...indexes, ...columns];
  const total = Number(attributes['data-total-rows'] ?? rows.length);
  // Every row gets all columns, so a row that is short in the JSON may be long here.
  const read = rows.slice(0, Math.max(1, Math.floor(MAX_CELLS / Math.max(1, keys.length))));
  return {
    headings: [keys],
    rows: read.map((row) => keys.map((key) => gridValueText(row[key]))),
    moreRows: Math.max(
      0,
      (Number.isFinite(total) ? Math.max(total, rows.length) : rows.length) - read.length,
    ),
  };
}

/**
 * Returns the rows that marimo embeds as JSON in a string or in a data URL. There are none when
 * only the kernel has them.
 */
function readRows(data: unknown): readonly Readonly<Record<string, unknown>>[] {
  const [, base64] = /^data:[^,]*;base64,(.*)$/s.exec(typeof data === 'string' ? data : '') ?? [];
  const rows = typeof data === 'string' ? jsonOf(base64 === undefined ? data : fromBase64(base64)) : data;
  return Array.isArray(rows) ? rows.map((row: unknown) => ({ ...Object(row) })) : [];
}

/** Returns the UTF-8 text that is encoded in base64; empty if there is none. */
function fromBase64(base64: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
  } catch {
    return '';
  }
}

function jsonOf(text: string | undefined): unknown {
  try {
    return parsePythonJson(text ?? 'null');
  } catch {
    return undefined; // the text is not the attribute's JSON
  }
}
