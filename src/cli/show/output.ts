/** One output of a cell as text for a terminal. An output that cannot be text becomes a file. */
import type { Style } from '../style.ts';
import type { GridLimits } from './grid.ts';
import { htmlText } from './html.ts';
import { parsePythonJson } from './python-json.ts';

export interface OutputFile {
  readonly mimetype: string;
  readonly bytes: Uint8Array;
}

export interface ShowOptions {
  readonly style: Style;
  readonly color: boolean;
  readonly limits: GridLimits;
  /** Takes an output that is not text. Returns the text to write in its place. */
  readonly keep: (file: OutputFile) => string;
}

export interface TypedValue {
  readonly mimetype: string;
  readonly data?: unknown;
  /** The output as plain text. */
  readonly text?: string;
}

const MIMEBUNDLE = 'application/vnd.marimo+mimebundle';
const ONE_LINE = 88;

/**
 * Returns the text of an output, without a line break at its end; empty when there is nothing to show. Notebook code
 * can emit anything under any type, so a value that is nested too deep or too large is only named.
 */
export function outputText(value: TypedValue, options: ShowOptions): string {
  try {
    return readableText(value, options);
  } catch (error) {
    if (error instanceof RangeError) return `[${value.mimetype}, too large to show]`;
    throw error;
  }
}

function readableText({ mimetype, data = null, text: said }: TypedValue, options: ShowOptions): string {
  const { style } = options;
  if (mimetype === MIMEBUNDLE) return bestText(unbundle(data), options);
  if (mimetype === 'application/vnd.marimo+error') {
    return said !== undefined && isStructural(data) ? style.red(said) : errorsText(data, style);
  }
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  if (
    mimetype === 'application/vnd.marimo+traceback' ||
    mimetype === 'text/html' ||
    mimetype === 'text/markdown'
  ) {
    return pageText(text, options);
  }
  if (text.startsWith('data:')) return keepDataUrl(text, options, mimetype);
  if (mimetype.startsWith('text/')) return text.replace(/\n$/, '');
  if (mimetype === 'application/json') return jsonText(parsed(text), options);
  return options.keep({ mimetype, bytes: Buffer.from(text) });
}

/** The words of a page. One that only a browser can show, since scripts make it, is saved. */
function pageText(html: string, options: ShowOptions): string {
  const page = (inner: string) => options.keep({ mimetype: 'text/html', bytes: Buffer.from(inner) });
  const image = (url: string, mimetype?: string) => keepDataUrl(url, options, mimetype);
  const words = htmlText(html, { ...options, image, page });
  return words === '' && /<script/i.test(html) ? page(html) : words;
}

/** Returns the representation that shows most in a terminal, of a value that has several. */
export function bestText(values: readonly TypedValue[], options: ShowOptions): string {
  const rank = ({ mimetype }: TypedValue) => {
    if (mimetype.startsWith('image/')) return 0;
    const at = ['text/html', 'text/markdown', 'application/json', 'text/plain'].indexOf(mimetype);
    return at === -1 ? 1.5 : at + 1;
  };
  const [best] = [...values].sort((a, b) => rank(a) - rank(b));
  return best === undefined ? '' : outputText(best, options);
}

function unbundle(data: unknown): TypedValue[] {
  const bundle: unknown = typeof data === 'string' ? parsed(data) : data;
  return Object.entries(Object(bundle))
    .filter(([mimetype]) => mimetype.includes('/'))
    .map(([mimetype, value]) => ({ mimetype, data: value }));
}

function keepDataUrl(url: string, { keep }: ShowOptions, mimetype?: string): string {
  const comma = url.indexOf(',');
  const head = comma < 0 ? '' : url.slice('data:'.length, comma);
  const content = comma < 0 ? '' : url.slice(comma + 1);
  const own = head.split(';', 1)[0] ?? '';
  const bytes = head.endsWith(';base64') ? Buffer.from(content, 'base64') : percentDecoded(content);
  return keep({ mimetype: mimetype ?? own, bytes });
}

/** Decodes percent signs that are followed by two digits. Everything else stands for itself. */
function percentDecoded(content: string): Buffer {
  const bytes = Buffer.from(content).toString('latin1');
  const decoded = bytes.replace(/%([0-9a-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(decoded, 'latin1');
}

/** Returns whether these are errors of cells that cannot run, whose text names the other cells. */
function isStructural(data: unknown): boolean {
  const [first]: readonly unknown[] = Array.isArray(data) ? data : [];
  return ['multiple-defs', 'cycle', 'setup-refs', 'ancestor-prevented'].includes(Object(first).type);
}

/** Errors as one line each, or as the kernel has formatted them; `null` entries are passed over. */
function errorsText(data: unknown, style: Style): string {
  const errors: readonly unknown[] = Array.isArray(data) ? data : [];
  return errors.map((error) => style.red(errorText({ ...Object(error) }))).join('\n');
}

function errorText(error: Readonly<Record<string, unknown>>): string {
  const type = text(error.exception_type) ?? text(error.type) ?? 'error';
  const message = text(error.msg)?.trimEnd();
  const cells =
    Array.isArray(error.cells) && error.cells.length > 0
      ? ` (also in ${error.cells.map(String).join(', ')})`
      : '';
  if (error.type === 'multiple-defs') return `"${error.name}" is defined in several cells${cells}`;
  if (error.type === 'cycle') return 'this cell is part of a cycle';
  if (message === undefined || message === '') return `${type}${cells}`;
  // Syntax errors come with the line and a marker below it.
  return message.includes('\n') || message.startsWith(type) ? message : `${type}: ${message}`;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** An integer beyond 2^53 among the leaves, which JSON.stringify can only write as text. */
const BIG_INTEGER = /"\\u0001(-?\d+)"/g;

/** Returns one of marimo's trees as text. Its leaves are written as `mimetype:data`. */
function jsonText(value: unknown, options: ShowOptions): string {
  const shown = JSON.stringify(value, (_, leaf: unknown) => {
    const [, mimetype, data] = typeof leaf === 'string' ? (/^(text\/[\w.+-]+):(.*)$/s.exec(leaf) ?? []) : [];
    if (mimetype === 'text/plain+bigint') return `\u0001${data}`;
    return mimetype === undefined
      ? leaf
      : plainLeaf(outputText({ mimetype, data }, { ...options, color: false }));
  });
  const whole =
    shown.length <= ONE_LINE ? shown : JSON.stringify(JSON.parse(shown), null, 2).replaceAll('\\n', '\n    ');
  return whole.replace(BIG_INTEGER, '$1');
}

function plainLeaf(shown: string): string {
  return shown.includes('\n') ? `\n${shown}\n` : shown;
}

function parsed(json: string): unknown {
  try {
    return parsePythonJson(json);
  } catch {
    return json; // notebook code can emit anything under any type
  }
}
