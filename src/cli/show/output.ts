/** One output of a cell, as people read it in a terminal; what cannot be text becomes a file. */
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
  /** Takes what is no text and answers what to write in its place. */
  readonly keep: (file: OutputFile) => string;
}

export interface TypedValue {
  readonly mimetype: string;
  readonly data?: unknown;
}

const MIMEBUNDLE = 'application/vnd.marimo+mimebundle';
const ONE_LINE = 88;

/**
 * The text of an output, without a line break at its end; empty when there is nothing to see. Notebook code can emit
 * anything under any type, so what is nested too deep or too large to be read is only named.
 */
export function outputText(value: TypedValue, options: ShowOptions): string {
  try {
    return readableText(value, options);
  } catch (error) {
    if (error instanceof RangeError) return `[${value.mimetype}, too large to show]`;
    throw error;
  }
}

function readableText({ mimetype, data = null }: TypedValue, options: ShowOptions): string {
  const { style } = options;
  if (mimetype === MIMEBUNDLE) return bestText(unbundle(data), options);
  if (mimetype === 'application/vnd.marimo+error') return errorsText(data, style);
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  if (
    mimetype === 'application/vnd.marimo+traceback' ||
    mimetype === 'text/html' ||
    mimetype === 'text/markdown'
  ) {
    return htmlText(text, { ...options, image: (url) => keepDataUrl(url, options) });
  }
  if (text.startsWith('data:')) return keepDataUrl(text, options, mimetype);
  if (mimetype.startsWith('text/')) return text.replace(/\n$/, '');
  if (mimetype === 'application/json') return jsonText(parsed(text), options);
  return options.keep({ mimetype, bytes: Buffer.from(text) });
}

/** Of values that show the same in several ways, the one that says most in a terminal. */
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

/** What is not a percent sign with two digits stands for itself. */
function percentDecoded(content: string): Buffer {
  const bytes = Buffer.from(content).toString('latin1');
  const decoded = bytes.replace(/%([0-9a-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(decoded, 'latin1');
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

/** marimo writes the leaves of its trees as `mimetype:data`. */
function jsonText(value: unknown, options: ShowOptions): string {
  const shown = JSON.stringify(value, (_, leaf: unknown) => {
    const [, mimetype, data] = typeof leaf === 'string' ? (/^(text\/[\w.+-]+):(.*)$/s.exec(leaf) ?? []) : [];
    return mimetype === undefined
      ? leaf
      : plainLeaf(outputText({ mimetype, data }, { ...options, color: false }));
  });
  return shown.length <= ONE_LINE
    ? shown
    : JSON.stringify(JSON.parse(shown), null, 2).replaceAll('\\n', '\n    ');
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
