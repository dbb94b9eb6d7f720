/**
 * Limits the lines of one kind in the log. A client whose every request or connection is worth a line could otherwise fill the disk of
 * the server, and hide other lines. The lines that were left out are counted in a line of their own.
 */

const WINDOW_MS = 10_000;
/** The most lines of one kind in a window. Later lines are left out. */
const MAX_LINES = 100;
/** Kinds that are counted at once. A message is a fixed text, so a server has far fewer. */
const MAX_KINDS = 1000;

interface Window {
  readonly endsAtMs: number;
  lines: number;
}

export class LogFlood {
  readonly #windows = new Map<string, Window>();

  /**
   * Returns whether another line of `kind` is written. At the end of a window in which lines were left out, calls `tell` with their
   * number.
   */
  admits(kind: string, tell: (leftOut: number) => void): boolean {
    const nowMs = performance.now();
    let window = this.#windows.get(kind);
    if (window === undefined || window.endsAtMs <= nowMs) {
      if (this.#windows.size >= MAX_KINDS) this.#windows.clear();
      window = { endsAtMs: nowMs + WINDOW_MS, lines: 0 };
      this.#windows.set(kind, window);
    }
    const { endsAtMs } = window;
    window.lines++;
    if (window.lines <= MAX_LINES) return true;
    if (window.lines === MAX_LINES + 1) {
      const counted = window;
      setTimeout(() => tell(counted.lines - MAX_LINES), endsAtMs - nowMs).unref();
    }
    return false;
  }
}
