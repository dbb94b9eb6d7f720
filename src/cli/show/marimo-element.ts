import type { Grid } from './grid.ts';
import { parsePythonJson } from './python-json.ts';

/** What is to be read of one of marimo's own elements. `container`: whatever it contains. */
export type MarimoElement =
  | { readonly kind: 'table'; readonly grid: Grid }
  | { readonly kind: 'html'; readonly html: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'container' };

type Attributes = Readonly<Record<string, string>>;

/** Members of every attribute are JSON, as marimo's front end reads them. */
export function readMarimoElement(name: string, attributes: Attributes): MarimoElement {
  if (name === 'marimo-table') return { kind: 'table', grid: readTable(attributes) };
  if (name === 'marimo-json-output') {
    return { kind: 'text', text: JSON.stringify(jsonOf(attributes['data-json-data'])) };
  }
  const html = jsonOf(attributes['data-html']);
  if (typeof html === 'string') return { kind: 'html', html };
  if (!('data-initial-value' in attributes)) return { kind: 'container' };
  const label = jsonOf(attributes['data-label']);
  const words = typeof label === 'string' ? label.replace(/<[^<>]*>/g, '').trim() : '';
  const value = JSON.stringify(jsonOf(attributes['data-initial-value']));
  return { kind: 'text', text: `[${words === '' ? name.slice('marimo-'.length) : words}: ${value}]` };
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
  return {
    headings: [keys],
    rows: rows.map((row) => keys.map((key) => valueText(row[key]))),
    moreRows: Number.isFinite(total) ? Math.max(0, total - rows.length) : 0,
  };
}

/** Rows as marimo embeds them: JSON in a string, or in a data URL. None when they are only to be had from the kernel. */
function readRows(data: unknown): readonly Readonly<Record<string, unknown>>[] {
  const text = typeof data === 'string' ? data : '';
  const [, base64] = /^data:application\/json;base64,(.*)$/s.exec(text) ?? [];
  const rows =
    typeof data === 'string'
      ? jsonOf(base64 === undefined ? text : Buffer.from(base64, 'base64').toString())
      : data;
  return Array.isArray(rows) ? rows.map((row: unknown) => ({ ...Object(row) })) : [];
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function jsonOf(text: string | undefined): unknown {
  try {
    return parsePythonJson(text ?? 'null');
  } catch {
    return undefined; // not the attribute that it was taken for
  }
}
