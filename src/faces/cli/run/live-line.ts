/**
 * A status line at the bottom of a terminal, which is redrawn until it is disposed of. Until then everything else must be printed
 * through `terminal`. On a terminal that cannot redraw, the line is not shown.
 */
import { safeLine } from '../safe-text.ts';
import { cutTo } from '../show/width.ts';
import type { Terminal } from '../terminal.ts';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const REDRAW_MS = 100;
/** The width of a terminal that does not report one. */
const USUAL_COLUMNS = 80;

/** The line, and a terminal that prints above it. */
export class LiveLine implements Disposable {
  /** Prints above the line. */
  readonly terminal: Terminal;
  readonly #screen: Terminal;
  readonly #say: () => string;
  readonly #timer: NodeJS.Timeout | undefined;
  #isDrawn = false;
  #isLineOpen = false;
  #frame = 0;

  /** `say` returns the line for each redraw; an empty text hides the line. */
  constructor(screen: Terminal, say: () => string) {
    this.#screen = screen;
    this.#say = say;
    this.terminal = {
      ...screen,
      out: (text) => this.#print(text, screen.out),
      err: (text) => this.#print(text, screen.err),
      printed: (stream, text) => this.#print(text, (shown) => screen.printed(stream, shown)),
    };
    if (screen.live !== true) return;
    this.#timer = setInterval(() => this.#draw(), REDRAW_MS);
    this.#timer.unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#clear();
  }

  #print(text: string, write: (text: string) => void): void {
    if (text === '') return;
    this.#clear();
    write(text);
    // The line must not be drawn into the middle of another one.
    this.#isLineOpen = !text.endsWith('\n');
  }

  #draw(): void {
    if (this.#isLineOpen) return;
    const text = this.#say();
    this.#clear();
    if (text === '') return;
    this.#frame = (this.#frame + 1) % FRAMES.length;
    const line = `${FRAMES[this.#frame]} ${safeLine(text)}`;
    this.#screen.err(cutTo(line, (this.#screen.columns ?? USUAL_COLUMNS) - 1));
    this.#isDrawn = true;
  }

  #clear(): void {
    if (this.#isDrawn) this.#screen.eraseLine();
    this.#isDrawn = false;
  }
}
