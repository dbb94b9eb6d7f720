/**
 * Watches over one request to a model's server: `onSilence` is called when no byte has come for `silenceMs`, counted
 * from its making, until it is disposed of.
 */
export class SilenceWatch implements Disposable {
  readonly #timer: NodeJS.Timeout;

  constructor(silenceMs: number, onSilence: () => void) {
    this.#timer = setTimeout(onSilence, silenceMs);
  }

  /** A `fetch` whose answers are heard byte by byte. */
  readonly fetchWith = (send: typeof fetch): typeof fetch => {
    return async (input, init) => {
      const response = await send(input, init);
      this.#timer.refresh();
      if (response.body === null) return response;
      const heard = response.body.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform: (chunk, controller) => {
            this.#timer.refresh();
            controller.enqueue(chunk);
          },
        }),
      );
      const { status, statusText, headers } = response;
      return new Response(heard, { status, statusText, headers });
    };
  };

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
