/**
 * Watches over one request to a model's server: `onSilence` is called when nothing was heard for `silenceMs`, counted
 * from its making, until it is disposed of.
 */
export class SilenceWatch implements Disposable {
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
