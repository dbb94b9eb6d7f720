import { MAX_CODE_CHARS } from '../open/view.ts';

/**
 * How long a page may take to receive a text and to send it back. marimo's page sends it back after
 * 400 ms.
 */
const ECHO_MS = 5000;
const MAX_TEXTS = 20;
/** The characters of all texts that are remembered: twice as many as a notebook has. */
const MAX_CHARS = 2 * MAX_CODE_CHARS;

interface SentText {
  readonly code: string;
  readonly atMs: number;
}

/**
 * Recognises the texts of cells that a page sends back: marimo's page returns each change that it
 * receives as a change of its own, a moment later. Two pages would undo each other's edits that
 * way.
 */
export class EchoFilter {
  /** The texts of each cell, the newest last. The cells are in the order in which they got their newest texts. */
  readonly #sent = new Map<string, readonly SentText[]>();
  #chars = 0;
  /**
   * The time, by cell, at which the page was last sent a text of another author that it has not
   * sent back yet.
   */
  readonly #behind = new Map<string, number>();

  /** Notes that the page was sent this text of a cell, which the page did not write. */
  sent(cellId: string, code: string, nowMs: number = performance.now()): void {
    this.#behind.delete(cellId); // so that the cell comes last
    this.#behind.set(cellId, nowMs);
    this.corrected(cellId, code, nowMs);
  }

  /** Notes that the page was sent the text that results from the page's own change of the cell. */
  corrected(cellId: string, code: string, nowMs: number = performance.now()): void {
    const known = this.#sent.get(cellId);
    if (known === undefined) {
      // One change may bring the texts of thousands of cells.
      this.#sent.set(cellId, [{ code, atMs: nowMs }]);
      this.#chars += code.length;
    } else {
      const texts = known.filter(({ atMs }) => nowMs - atMs < ECHO_MS);
      this.#keep(cellId, []); // so that the cell comes last
      this.#keep(cellId, [...texts.slice(1 - MAX_TEXTS), { code, atMs: nowMs }]);
    }
    this.trim(nowMs);
  }

  /** Forgets texts that can no longer come back, and the oldest ones while there are too many. */
  trim(nowMs: number = performance.now()): void {
    for (const [cellId, texts] of this.#sent) {
      const isOver = nowMs - (texts.at(-1)?.atMs ?? 0) >= ECHO_MS;
      if (!isOver && this.#chars <= MAX_CHARS) break;
      this.#forget(cellId);
    }
    for (const [cellId, atMs] of this.#behind) {
      if (nowMs - atMs < ECHO_MS) break;
      this.#behind.delete(cellId);
    }
  }

  /** The number of characters of all remembered texts. */
  get chars(): number {
    return this.#chars;
  }

  /**
   * Notes that the page wrote a text of the cell itself. The page then sends back no earlier text,
   * because it waits for a pause in writing before it does so.
   */
  wrote(cellId: string): void {
    if (this.#sent.has(cellId)) this.#keep(cellId, []);
  }

  /**
   * Returns whether a text of another author may reach the page after the text that the page has
   * just written.
   */
  mayBeBehind(cellId: string, nowMs: number = performance.now()): boolean {
    return nowMs - (this.#behind.get(cellId) ?? Number.NEGATIVE_INFINITY) < ECHO_MS;
  }

  /**
   * Returns whether the page is sending this text back. If so, forgets it, together with the texts
   * that were sent before it.
   */
  isEcho(cellId: string, code: string, nowMs: number = performance.now()): boolean {
    const texts = this.#sent.get(cellId);
    if (texts === undefined) return false;
    const at = texts.findLastIndex((text) => text.code === code && nowMs - text.atMs < ECHO_MS);
    if (at === -1) return false;
    const rest = texts.slice(at + 1);
    if (rest.length > 0) this.#keep(cellId, rest);
    else this.#forget(cellId);
    return true;
  }

  #forget(cellId: string): void {
    this.#keep(cellId, []);
    this.#behind.delete(cellId);
  }

  #keep(cellId: string, texts: readonly SentText[]): void {
    this.#chars += charsOf(texts) - charsOf(this.#sent.get(cellId));
    if (texts.length > 0) this.#sent.set(cellId, texts);
    else this.#sent.delete(cellId);
  }
}

function charsOf(texts: readonly SentText[] = []): number {
  return texts.reduce((sum, { code }) => sum + code.length, 0);
}
