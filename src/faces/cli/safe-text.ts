/**
 * Makes text safe for terminals. Printed text, answers of models and names can come from anybody. Escape sequences in them could
 * set the window's title, write to the clipboard, or forge the command line's own output by moving the cursor. The result has
 * text, tabs, line feeds and, where there are colours, the sequences that set colours and emphasis (SGR). Every regular
 * expression here takes time proportional to the length of the text.
 */

/**
 * ECMA-48: control sequences, control strings with their content, and other escape sequences. As in a terminal, a control string
 * ends where another one begins. Otherwise each of many beginnings would be searched to the end of the text.
 */
const ESC = '\\x1b';
const CONTROL_SEQUENCE = `(?:${ESC}\\[|\\x9b)[0-?]*[ -/]*[@-~]`;
const CONTROL_STRING =
  '(?:\\x1b[\\]PX^_]|[\\x90\\x98\\x9d-\\x9f])[^\\x07\\x18\\x1a\\x1b\\n\\x80-\\x9f]*(?:\\x07|\\x1b\\\\|\\x9c)';
const ESCAPE_SEQUENCE = '\\x1b[ -/]*[0-~]';
/**
 * Single control characters except tab and line feed, and characters that change the direction of the text after them.
 */
const CONTROLS = '[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]';

const UNSAFE = new RegExp(`${CONTROL_SEQUENCE}|${CONTROL_STRING}|${ESCAPE_SEQUENCE}|${CONTROLS}`, 'g');
const IS_UNSAFE = new RegExp(CONTROLS);
const UNSAFE_IN_JSON = /[\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;
/** At most sixteen numbers of three digits: 24-bit colours for text and background take ten. */
const COLOR = new RegExp(`^${ESC}\\[(?:\\d{0,3}[;:]){0,15}\\d{0,3}m$`);
/** The beginning of a control sequence or of a line end, which the next text may complete. */
const UNFINISHED = new RegExp(`(?:${ESC}(?:\\[[0-9;:]{0,64})?|(?<!\\r)\\r+)$`);
/** More characters than any of these sequences has. */
const UNFINISHED_LENGTH = 70;

export interface SafeTextOptions {
  /** Whether sequences that set colours stay. */
  readonly colors: boolean;
}

/** Returns the text without anything that controls a terminal. A carriage return becomes a line feed. */
export function safeText(text: string, { colors }: SafeTextOptions): string {
  if (!IS_UNSAFE.test(text)) return text;
  return text
    .replace(/\r+\n?/g, '\n')
    .replace(UNSAFE, (sequence) => (colors && COLOR.test(sequence) ? sequence : ''));
}

/** Returns the text on one line, without colours: for names, table cells and the like. */
export function safeLine(text: string): string {
  return safeText(text, { colors: false }).replace(/[\t\n]+/g, ' ');
}

/** Returns the JSON with control characters in its strings escaped. The value is unchanged. */
export function safeJson(json: string): string {
  return json.replace(
    UNSAFE_IN_JSON,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The most characters of an incomplete line that are held. */
const MAX_HELD_CHARS = 64 * 1024;

/**
 * The output of a program for a file or another program: without escape sequences, and with only the last version of a line that
 * progress bars rewrite with carriage returns.
 */
export class FoldedText {
  #line = '';

  /** Returns the complete lines. An incomplete line is held back, because it may be rewritten. */
  take(text: string): string {
    const whole = this.#line + text;
    const end = whole.lastIndexOf('\n') + 1;
    this.#line = whole.slice(end);
    const lines = end === 0 ? '' : whole.slice(0, end).split('\n').map(folded).join('\n');
    return this.#line.length > MAX_HELD_CHARS ? lines + this.flush() : lines;
  }

  /** Returns the incomplete line. */
  flush(): string {
    const line = folded(this.#line);
    this.#line = '';
    return line;
  }
}

function folded(line: string): string {
  const shown = line.replace(/(?<!\r)\r+$/, '');
  return safeText(shown.slice(shown.lastIndexOf('\r') + 1), { colors: false });
}

/**
 * Makes the output of a program safe, piece by piece. A sequence or a line end that is split between two pieces is joined. A
 * single carriage return is written as `restart`: progress bars use it to begin their line again.
 */
export class TerminalText {
  readonly #restart: string;
  readonly #options: SafeTextOptions;
  #rest = '';

  constructor(restart: string, options: SafeTextOptions) {
    this.#restart = restart;
    this.#options = options;
  }

  /** Returns the part of the text so far that can be written. */
  take(text: string): string {
    const whole = this.#rest + text;
    this.#rest = UNFINISHED.exec(whole.slice(-UNFINISHED_LENGTH))?.[0] ?? '';
    return whole
      .slice(0, whole.length - this.#rest.length)
      .split(/(\r+\n?)/)
      .map((part) => (part.startsWith('\r') ? this.#lineEnd(part) : safeText(part, this.#options)))
      .join('');
  }

  #lineEnd(returns: string): string {
    return returns.endsWith('\n') ? '\n' : this.#restart;
  }

  /** Forgets the incomplete end of the text. */
  drop(): void {
    this.#rest = '';
  }
}
