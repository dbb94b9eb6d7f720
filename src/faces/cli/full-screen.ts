/**
 * A terminal that one command fills until it is disposed of. Frames are drawn in place, in one write and without clearing first, so
 * that nothing flickers. Whenever the process ends, the terminal is restored.
 */
import { safeText } from './safe-text.ts';

/** A terminal that can be drawn on. */
export interface ScreenDevice {
  write(text: string): void;
  /** The size now; it may change at any time. */
  size(): { readonly columns: number; readonly rows: number };
  /** Until the result is disposed of, calls `listener` after each change of the size, and `leave` when the process ends. */
  watch(listener: () => void, leave: () => void): Disposable;
}

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const REST_OF_LINE = '\u001b[K';
const REST_OF_SCREEN = '\u001b[J';

export class FullScreen implements Disposable {
  readonly #device: ScreenDevice;
  readonly #subscription: Disposable;
  #isOpen = true;

  /** `onResize` is called after each change of the size, and should draw again. */
  constructor(device: ScreenDevice, onResize: () => void) {
    this.#device = device;
    this.#subscription = device.watch(onResize, () => this.#leave());
    device.write(ENTER);
  }

  size(): { readonly columns: number; readonly rows: number } {
    return this.#device.size();
  }

  /** Replaces the lines on the screen with these, which must fit. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const text = lines.map((line) => safeText(line, { colors: true }) + REST_OF_LINE).join('\r\n');
    this.#device.write(`${HOME}${text}${REST_OF_SCREEN}`);
  }

  [Symbol.dispose](): void {
    this.#leave();
    this.#subscription[Symbol.dispose]();
  }

  #leave(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#device.write(LEAVE);
  }
}

/**
 * Returns the screen of this process; undefined when standard output is not a terminal that can be drawn on. `term` is the
 * terminal's type from the environment.
 */
export function processScreen(term: string | undefined): ScreenDevice | undefined {
  const { stdout } = process;
  if (stdout.isTTY !== true || term === 'dumb') return undefined;
  return {
    write: (text) => {
      stdout.write(text);
    },
    size: () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 }),
    watch(listener, leave) {
      const onHangUp = () => process.exit(129);
      stdout.on('resize', listener);
      process.on('exit', leave).on('SIGHUP', onHangUp);
      return {
        [Symbol.dispose]() {
          stdout.off('resize', listener);
          process.off('exit', leave).off('SIGHUP', onHangUp);
        },
      };
    },
  };
}
