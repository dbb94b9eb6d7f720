import { createRequire } from 'node:module';

/** Loaded with the first HTML there is: it is thirty files, which a start need not wait for. */
const require = createRequire(import.meta.url);

const BLOCKS = new Set([
  'p',
  'div',
  'tr',
  'li',
  'br',
  'h1',
  'h2',
  'h3',
  'h4',
  'h5',
  'h6',
  'pre',
  'table',
  'ul',
]);
const SILENT = new Set(['script', 'style', 'svg', 'head']);

/** Returns the readable part of HTML as plain text: cells of a row with bars between them, marimo's tables as rows. */
export function htmlText(html: string): string {
  const { Parser }: typeof import('htmlparser2') = require('htmlparser2');
  let text = '';
  let silent = 0;
  const parser = new Parser({
    onopentag(name, attributes) {
      if (SILENT.has(name)) silent++;
      if (BLOCKS.has(name) && !text.endsWith('\n')) text += '\n';
      if (name === 'marimo-table') text += tableText(attributes);
      else if (attributes['data-initial-value'] !== undefined) {
        text += ` [${name}: ${attributes['data-initial-value']}]`;
      }
    },
    ontext(data) {
      if (silent === 0) text += data;
    },
    onclosetag(name) {
      if (SILENT.has(name)) silent--;
      if (name === 'td' || name === 'th') text += ' | ';
      if (BLOCKS.has(name) && !text.endsWith('\n')) text += '\n';
    },
  });
  parser.end(html);
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

/** Rows as marimo embeds them: JSON in a JSON string, or in a data URL. */
function tableText(attributes: Readonly<Record<string, string>>): string {
  const rows = rowsOf(attributes['data-data'] ?? '');
  const columns = Object.keys(rows[0] ?? {}).filter((key) => key !== '_marimo_row_id');
  const lines = [columns, ...rows.map((row) => columns.map((key) => valueText(row[key])))];
  const total = Number(attributes['data-total-rows'] ?? rows.length);
  const note = total > rows.length ? `\n[${rows.length} of ${total} rows]` : '';
  return `${lines.map((line) => line.join(' | ')).join('\n')}${note}\n`;
}

function rowsOf(attribute: string): Readonly<Record<string, unknown>>[] {
  const embedded = jsonOf(attribute);
  const [, base64] = /^data:[^,]*;base64,(.*)$/s.exec(typeof embedded === 'string' ? embedded : '') ?? [];
  const inner = base64 === undefined ? embedded : Buffer.from(base64, 'base64').toString('utf8');
  const rows = typeof inner === 'string' ? jsonOf(inner) : inner;
  return Array.isArray(rows) ? rows.map((row: unknown) => ({ ...Object(row) })) : [];
}

/** Reads JSON as Python writes it, with NaN and the infinities. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    try {
      return JSON.parse(text.replace(/(?<=[[:,]\s*)(NaN|-?Infinity)(?=\s*[\],}])/g, 'null'));
    } catch {
      return undefined; // not what it was taken for
    }
  }
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
