import { createRequire } from 'node:module';

/** Loaded with the first HTML there is: it is thirty files, which a start need not wait for. */
const require = createRequire(import.meta.url);

/** How much of an output's HTML is read. Parsing as much as this blocks the event loop for some ten milliseconds. */
export const MAX_HTML_CHARS = 256 * 1024;
/** The parser looks through all open elements at each end tag, so their number is bounded. */
export const MAX_HTML_DEPTH = 256;
/** How much text is made of a table. A model is shown less. */
const MAX_TABLE_CHARS = 64 * 1024;

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

export interface ReadHtml {
  readonly text: string;
  /** The `src` of each `img`. */
  readonly pictures: readonly string[];
}

/**
 * Returns the readable part of HTML as plain text, with bars between the cells of a row and marimo's tables as rows. Of
 * long or deeply nested HTML it reads the beginning, and the text says so.
 */
export function readHtml(html: string): ReadHtml {
  const { Parser }: typeof import('htmlparser2') = require('htmlparser2');
  const lines = new Lines();
  const pictures: string[] = [];
  let silent = 0;
  let depth = 0;
  let isTooDeep = false;
  const parser = new Parser({
    onopentag(name, attributes) {
      if (++depth > MAX_HTML_DEPTH) {
        isTooDeep = true;
        parser.pause(); // nothing after this tag is parsed
        return;
      }
      if (SILENT.has(name)) silent++;
      if (BLOCKS.has(name)) lines.end();
      if (name === 'img' && attributes.src !== undefined) pictures.push(attributes.src);
      if (name === 'marimo-table') lines.add(tableText(attributes));
      else if (attributes['data-initial-value'] !== undefined) {
        lines.add(` [${name}: ${attributes['data-initial-value']}]`);
      }
    },
    ontext(data) {
      if (silent === 0) lines.add(data);
    },
    onclosetag(name) {
      depth--;
      if (SILENT.has(name)) silent--;
      if (name === 'td' || name === 'th') lines.add(' | ');
      if (BLOCKS.has(name)) lines.end();
    },
  });
  parser.end(html.slice(0, MAX_HTML_CHARS));
  return { text: [lines.text, noteOf(html.length, isTooDeep)].filter(Boolean).join('\n'), pictures };
}

/** Returns a note that says what was not read; empty when everything was. */
function noteOf(length: number, isTooDeep: boolean): string {
  if (isTooDeep) return `[the rest was not read: its elements are nested more than ${MAX_HTML_DEPTH} deep]`;
  if (length <= MAX_HTML_CHARS) return '';
  return `[only the first ${MAX_HTML_CHARS} of ${length} characters of HTML were read]`;
}

/**
 * A text that is put together piece by piece. It remembers whether the last piece ended a line, because calling
 * `endsWith` on the growing text would copy the whole text each time.
 */
class Lines {
  readonly #pieces: string[] = [];
  #isEnded = false;

  get text(): string {
    return this.#pieces
      .join('')
      .split('\n')
      .map((line) => line.trimEnd())
      .join('\n')
      .replace(/\n{3,}/g, '\n\n')
      .trim();
  }

  add(piece: string): void {
    if (piece === '') return;
    this.#pieces.push(piece);
    this.#isEnded = piece.endsWith('\n');
  }

  /** Ends the line, unless it is ended already. */
  end(): void {
    if (!this.#isEnded) this.add('\n');
  }
}

/** Returns the rows as marimo embeds them: JSON in a JSON string, or in a data URL. */
function tableText(attributes: Readonly<Record<string, string>>): string {
  const rows = rowsOf(attributes['data-data'] ?? '');
  const columns = Object.keys(rows[0] ?? {}).filter((key) => key !== '_marimo_row_id');
  const lines = [columns.join(' | ')];
  let length = 0;
  for (const row of rows) {
    const line = columns.map((key) => valueText(row[key])).join(' | ');
    length += line.length + 1;
    // Every row gets all columns of the first one, so a row that is short in the JSON can be long here.
    if (length > MAX_TABLE_CHARS) break;
    lines.push(line);
  }
  const shown = lines.length - 1;
  const total = Number(attributes['data-total-rows'] ?? rows.length);
  const note = total > shown ? `\n[${shown} of ${total} rows]` : '';
  return `${lines.join('\n')}${note}\n`;
}

function rowsOf(attribute: string): Readonly<Record<string, unknown>>[] {
  const embedded = jsonOf(attribute);
  const [, base64] = /^data:[^,]*;base64,(.*)$/s.exec(typeof embedded === 'string' ? embedded : '') ?? [];
  const inner = base64 === undefined ? embedded : Buffer.from(base64, 'base64').toString('utf8');
  const rows = typeof inner === 'string' ? jsonOf(inner) : inner;
  return Array.isArray(rows) ? rows.map((row: unknown) => ({ ...Object(row) })) : [];
}

/**
 * Matches strings, so that what looks like a number in a string is left alone, and the numbers that JSON does not
 * have. A string may lack its end, so that no character is read twice.
 */
const STRING_OR_NON_JSON_NUMBER = /"(?:[^"\\]+|\\.)*"?|NaN|-?Infinity/gs;

/** Reads JSON as Python writes it, with NaN and the infinities. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    try {
      return JSON.parse(
        text.replace(STRING_OR_NON_JSON_NUMBER, (found) => (found.startsWith('"') ? found : 'null')),
      );
    } catch {
      return undefined; // not what it was taken for
    }
  }
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
