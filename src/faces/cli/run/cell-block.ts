/** The output of one cell for people: a heading before its first text, its console as it arrives, its output and its end. */
import type { ShownValue } from '#src/contract/outputs/representation.ts';
import type { CellResult } from '#src/contract/wire/run.ts';
import { shortDuration } from '../show/duration.ts';
import { outputText, type ShowOptions } from '../show/output.ts';
import type { StreamName, Terminal } from '../terminal.ts';

/** How a cell ended. */
export type CellEnd = CellResult['status'];

const MARKS: Readonly<Record<CellEnd, string>> = {
  success: '✓',
  error: '✗',
  stopped: '■',
  cancelled: '○',
  interrupted: '✗',
  disabled: '○',
};

/** The heading of a cell. */
export interface CellHeading {
  readonly name: string;
  readonly firstLine: string;
  /** The cell's position among the cells to run, such as `2/7`; empty when it is not one of them. */
  readonly place: string;
}

/** Prints the block of one cell. */
export class CellBlock {
  readonly #terminal: Terminal;
  readonly #options: ShowOptions;
  readonly #heading: CellHeading;
  #hasHeading = false;
  #hasTraceback = false;
  #hasSequences = false;
  #isLineOpen = false;

  constructor(terminal: Terminal, options: ShowOptions, heading: CellHeading) {
    this.#terminal = terminal;
    this.#options = options;
    this.#heading = heading;
  }

  /** Prints text of the cell, to the stream to which the cell printed it. */
  console({ channel, ...value }: ShownValue & { readonly channel?: string }): void {
    const isText = value.mimetype === 'text/plain' && typeof value.data === 'string';
    const text = isText ? String(value.data) : outputText(value, this.#options);
    if (text === '') return;
    this.#hasTraceback ||= value.mimetype === 'application/vnd.marimo+traceback';
    this.#begin();
    const stream = channel === 'stderr' ? 'err' : 'out';
    if (isText) this.#print(stream, text);
    else this.#write(stream, `${text}\n`);
  }

  /** Prints the end of the block. A cell without any output takes one line. */
  end(end: CellEnd, output: ShownValue | null, durationMs: number | null): void {
    const { style } = this.#options;
    // A traceback already ends with the error. For a cell that did not run, the note about its end is enough.
    const hidesOutput = this.#hasTraceback || end === 'cancelled' || end === 'interrupted';
    const text = output === null || hidesOutput ? '' : outputText(output, this.#options);
    const duration = durationMs === null ? '' : shortDuration(durationMs);
    const note = end === 'success' || end === 'error' ? '' : endNote(end);
    const mark = this.#paint(end, MARKS[end]);
    const rest = style.dim([note, duration].filter((part) => part !== '').join(', '));
    if (!this.#hasHeading) {
      this.#write('out', `${mark} ${this.#title()}${rest === '' ? '' : `  ${rest}`}\n`);
      if (text !== '') this.#write('out', `${text}\n\n`);
      return;
    }
    // A colour that the cell did not reset would colour our next line.
    if (this.#hasSequences && this.#options.color) this.#terminal.out('\u001b[0m');
    if (this.#isLineOpen) this.#write('out', '\n');
    if (text !== '') this.#write('out', `${text}\n`);
    this.#write('out', `${mark} ${rest}\n\n`);
  }

  #begin(): void {
    if (this.#hasHeading) return;
    this.#hasHeading = true;
    this.#write('out', `▸ ${this.#title()}\n`);
  }

  #title(): string {
    const { style } = this.#options;
    const { name, place, firstLine } = this.#heading;
    const count = place === '' ? '' : `${style.dim(place)} `;
    return `${count}${style.bold(name)}${firstLine === '' ? '' : `  ${style.dim(firstLine)}`}`;
  }

  #paint(end: CellEnd, mark: string): string {
    const { style } = this.#options;
    if (end === 'success') return style.green(mark);
    return end === 'error' || end === 'interrupted' ? style.red(mark) : style.yellow(mark);
  }

  #print(stream: StreamName, text: string): void {
    this.#terminal.printed(stream, text);
    this.#hasSequences ||= text.includes('\u001b');
    this.#isLineOpen = !text.endsWith('\n');
  }

  #write(stream: StreamName, text: string): void {
    this.#terminal[stream](text);
    this.#isLineOpen = !text.endsWith('\n');
  }
}

function endNote(end: Exclude<CellEnd, 'success' | 'error'>): string {
  if (end === 'stopped') return 'stopped by mo.stop';
  if (end === 'cancelled') return 'did not run';
  return end;
}
