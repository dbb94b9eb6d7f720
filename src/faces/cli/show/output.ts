/** One output of a cell as text for a terminal. An output that cannot be text becomes a file. */
import * as htmlparser2 from 'htmlparser2';
import { gridOf } from '#src/contract/outputs/grid.ts';
import { type Emphasis, htmlText } from '#src/contract/outputs/html-text.ts';
import { parsedOrText } from '#src/contract/outputs/python-json.ts';
import { preferred, representationFor, type ShownValue } from '#src/contract/outputs/representation.ts';
import { type Style, type StyleName, sequencesOf } from '../style.ts';
import { type GridLimits, gridText } from './grid.ts';

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

const ONE_LINE = 88;
const EMPHASES: Readonly<Record<Emphasis, StyleName>> = { strong: 'bold', code: 'cyan', error: 'red' };

/**
 * Returns the text of an output, without a line break at its end; empty when there is nothing to show. Notebook code can emit
 * anything under any type. So of a value that is too large or too deeply nested, only the type is shown.
 */
export function outputText(value: ShownValue, options: ShowOptions): string {
  try {
    return readableText(value, options);
  } catch (error) {
    if (error instanceof RangeError) return `[${value.mimetype}, too large to show]`;
    throw error;
  }
}

function readableText(value: ShownValue, options: ShowOptions): string {
  const { style, limits } = options;
  const shown = representationFor(value, 'terminal');
  switch (shown.kind) {
    case 'table':
      return gridText(gridOf(shown.table), limits, style);
    case 'error':
      return shown.text.split('\n').map(style.red).join('\n');
    case 'text':
      return shown.text.replace(/\n$/, '');
    case 'data':
      return dataText(shown.mimetype, shown.data, options);
  }
}

const HTML = new Set(['application/vnd.marimo+traceback', 'text/html', 'text/markdown']);

function dataText(mimetype: string, data: unknown, options: ShowOptions): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  if (HTML.has(mimetype)) return pageText(text, options);
  if (text.startsWith('data:')) return keepDataUrl(text, options, mimetype);
  if (mimetype.startsWith('text/')) return text.replace(/\n$/, '');
  if (mimetype === 'application/json') return jsonText(parsedOrText(text), options);
  return options.keep({ mimetype, bytes: Buffer.from(text) });
}

/** Returns the words of a page. A page that scripts draw is saved as a file instead. */
function pageText(html: string, options: ShowOptions): string {
  const page = (inner: string) => options.keep({ mimetype: 'text/html', bytes: Buffer.from(inner) });
  const words = htmlText(html, htmlparser2, {
    table: (grid) => gridText(grid, options.limits, options.style),
    embedded: (url, mimetype) => keepDataUrl(url, options, mimetype),
    page,
    emphasis: options.color ? (name) => sequencesOf(EMPHASES[name]) : undefined,
  });
  return words === '' && /<script/i.test(html) ? page(html) : words;
}

/** Returns the text of the output of a cell that says most in a terminal. */
export function bestText(values: readonly ShownValue[], options: ShowOptions): string {
  const best = preferred(values, 'terminal');
  return best === undefined ? '' : outputText(best, options);
}

function keepDataUrl(url: string, { keep }: ShowOptions, mimetype?: string): string {
  const comma = url.indexOf(',');
  const head = comma < 0 ? '' : url.slice('data:'.length, comma);
  const content = comma < 0 ? '' : url.slice(comma + 1);
  const own = head.split(';', 1)[0] ?? '';
  const bytes = head.endsWith(';base64') ? Buffer.from(content, 'base64') : percentDecoded(content);
  return keep({ mimetype: mimetype ?? own, bytes });
}

/** Decodes percent signs with two hexadecimal digits. Everything else is unchanged. */
function percentDecoded(content: string): Buffer {
  const bytes = Buffer.from(content).toString('latin1');
  const decoded = bytes.replace(/%([0-9a-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(decoded, 'latin1');
}

/** A leaf with an integer beyond 2^53, which JSON.stringify can only write as text. */
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
