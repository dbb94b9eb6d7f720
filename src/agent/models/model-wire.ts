/**
 * Sends the requests of one question to a model's server, as a `fetch` for the AI SDK. Bytes come straight from the connection,
 * because a stream of the platform would cost more than all the work on them.
 */
import type { Dispatcher } from 'undici';

export interface ModelWireOptions {
  readonly dispatcher: Dispatcher;
  /** Called with the size of every received piece of an answer, before the piece is used. */
  readonly onBytes: (count: number) => void;
  /** The value of the header that carries the trace context. */
  readonly traceparent?: string | undefined;
  /** Takes bytes of an event stream. Returns the bytes for the SDK. */
  readonly tap: { push(bytes: Uint8Array): string; end(): string };
}

/** All apps of the process share this agent, so that their calls of one server share its connections. */
let shared: Promise<Dispatcher> | undefined;

/** The HTTP agent for all servers with an address. Its callers set their own time limits. */
export function sharedDispatcher(): Promise<Dispatcher> {
  shared ??= import('undici').then(
    ({ Agent }) => new Agent({ bodyTimeout: 0, headersTimeout: 0, connect: { timeout: 30_000 } }),
  );
  return shared;
}

/** Returns a `fetch` that does not follow redirects, because keys are meant for one server only. */
export function fetchThrough(options: ModelWireOptions): typeof fetch {
  return (input, init = {}) =>
    new Promise((resolve, reject) => {
      const request = new WireRequest(options, resolve, reject);
      const { origin, pathname, search } = new URL(String(input));
      const { signal, method = 'GET', headers, body } = init;
      if (signal != null) request.heed(signal);
      const head = Object.fromEntries(new Headers(headers));
      if (options.traceparent !== undefined) head.traceparent = options.traceparent;
      const target = { origin, path: `${pathname}${search}`, method: method as 'POST', headers: head };
      options.dispatcher.dispatch({ ...target, body: body == null ? null : String(body) }, request);
    });
}

/** The most bytes of a response that is not an event stream: an error message. */
const MAX_PLAIN_BYTES = 1024 * 1024;
const BODILESS = new Set([204, 205, 304]);

class WireRequest implements Dispatcher.DispatchHandlers {
  readonly #options: ModelWireOptions;
  readonly #resolve: (response: Response) => void;
  readonly #reject: (error: unknown) => void;
  #head: { readonly status: number; readonly headers: Headers } | undefined;
  #body: ReadableStreamDefaultController<Uint8Array> | undefined;
  #isTapped = false;
  #isOver = false;
  #plainBytes = 0;
  #abort: (() => void) | undefined;
  #stopped: { readonly reason: unknown } | undefined;
  #unheed = () => {};

  constructor(
    options: ModelWireOptions,
    resolve: (response: Response) => void,
    reject: (error: unknown) => void,
  ) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Closes the connection when the signal aborts. */
  heed(signal: AbortSignal): void {
    const stop = () => {
      this.#stopped = { reason: signal.reason };
      this.#abort?.();
      this.#fail(signal.reason);
    };
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    this.#unheed = () => signal.removeEventListener('abort', stop);
  }

  onConnect(abort: () => void): void {
    this.#abort = abort;
    if (this.#stopped !== undefined) abort();
  }

  onHeaders(status: number, raw: Buffer[]): boolean {
    if (status < 200) return true;
    this.#options.onBytes(0);
    const headers = headersOf(raw);
    // `Response` throws at a status above 599. Such a status is handled as a failure of the provider's server.
    this.#head = { status: status > 599 ? 500 : status, headers };
    this.#isTapped = status === 200 && /event-stream/i.test(headers.get('content-type') ?? '');
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#isOver) return true;
    this.#options.onBytes(chunk.length);
    if (this.#isOver) return true; // `onBytes` has aborted the call
    if (this.#isTapped) this.#pass(this.#options.tap.push(chunk));
    else this.#passPlain(chunk);
    return true;
  }

  onComplete(): void {
    if (this.#isOver) return;
    if (this.#isTapped) this.#pass(this.#options.tap.end());
    const body = this.#open();
    this.#finish();
    body?.close();
  }

  onError(error: Error): void {
    this.#fail(this.#stopped?.reason ?? new TypeError('fetch failed', { cause: error }));
  }

  #passPlain(chunk: Buffer): void {
    this.#plainBytes += chunk.length;
    this.#open()?.enqueue(new Uint8Array(chunk));
    if (this.#plainBytes <= MAX_PLAIN_BYTES) return;
    this.#fail(new TypeError('fetch failed', { cause: new Error('The answer does not end.') }));
    this.#abort?.();
  }

  #pass(text: string): void {
    if (text !== '') this.#open()?.enqueue(Buffer.from(text));
  }

  /**
   * Gives the SDK the response only when the first bytes have arrived. The streams of the SDK take memory, which a
   * waiting call does not need.
   */
  #open(): ReadableStreamDefaultController<Uint8Array> | undefined {
    if (this.#body !== undefined || this.#head === undefined) return this.#body;
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#body = controller;
      },
      cancel: () => this.#abort?.(),
    });
    this.#resolve(new Response(BODILESS.has(this.#head.status) ? null : stream, this.#head));
    return this.#body;
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    const body = this.#stopped === undefined ? this.#open() : this.#body;
    this.#finish();
    this.#reject(error);
    body?.error(error);
  }

  #finish(): void {
    this.#isOver = true;
    this.#unheed();
  }
}

/** Returns the headers, with each byte of a value as one character, as `fetch` does (RFC 9110, section 5.5). */
function headersOf(raw: readonly Buffer[]): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    headers.append(raw[i]!.toString('latin1'), raw[i + 1]!.toString('latin1'));
  }
  return headers;
}
