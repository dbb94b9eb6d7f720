/**
 * A timeout that every sign of life starts again: `onSilence` is called when `heard` was not called for `silenceMs`. It
 * starts when it is made and ends with `dispose`.
 */
export class IdleTimeout implements Disposable {
  readonly #timer: NodeJS.Timeout;

  constructor(silenceMs: number, onSilence: () => void) {
    this.#timer = setTimeout(onSilence, silenceMs);
  }

  readonly heard = (): void => {
    this.#timer.refresh();
  };

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
