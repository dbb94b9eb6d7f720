/**
 * A line at the bottom of a terminal that says what is going on. It is redrawn until it is disposed of, and then removed.
 * Everything printed meanwhile must go through `terminal`. On a terminal that cannot redraw, nothing is shown.
 */
import { cutTo } from '../show/width.ts';
import type { Terminal } from '../terminal.ts';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const REDRAW_MS = 100;
const CLEAR = '\r\u001b[2K';

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

  /** `say` is called for each redraw; when it returns an empty text, the line is hidden. */
  constructor(screen: Terminal, say: () => string) {
    this.#screen = screen;
    this.#say = say;
    this.terminal = {
      ...screen,
      out: (text) => this.#print(text, screen.out),
      err: (text) => this.#print(text, screen.err),
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
    this.#screen.err(cutTo(`${FRAMES[this.#frame]} ${text}`, (this.#screen.columns ?? 80) - 1));
    this.#isDrawn = true;
  }

  #clear(): void {
    if (this.#isDrawn) this.#screen.err(CLEAR);
    this.#isDrawn = false;
  }
}
