/**
 * The load of the server as an event stream. It is measured once for all who follow it, each measurement is encoded once,
 * and while nobody follows nothing is measured.
 */
import type { EventSink, Subscription } from '#src/events/event-sink.ts';
import type { PublishedStream } from '#src/events/published-stream.ts';
import type { ServerFacts, ServerLoad, ServerStreamEnvelope } from '#src/wire/server.ts';

export type ServerStream = PublishedStream<ServerStreamEnvelope>;

export interface ServerEventsOptions {
  readonly stream: ServerStream;
  readonly facts: () => ServerFacts;
  readonly load: () => Promise<ServerLoad>;
  readonly everyMs?: number;
}

const EVERY_MS = 2_000;

export class ServerEvents implements Disposable {
  readonly #options: ServerEventsOptions;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  /** Of the measuring that goes on; a new one when somebody follows after nobody did. */
  #watch: AbortController | undefined;
  #sampledAt = '';

  constructor(options: ServerEventsOptions) {
    this.#options = options;
    this.#everyMs = options.everyMs ?? EVERY_MS;
    options.stream.onEmpty(() => this.#rest());
  }

  /** Attaches a subscriber, who gets what does not change and then the load, again and again. */
  follow(sink: EventSink): Subscription {
    const { stream, facts } = this.#options;
    const subscription = stream.subscribe(sink, {
      replay: () => [{ type: 'server.snapshot', data: facts() }],
    });
    if (this.#watch === undefined) {
      this.#watch = new AbortController();
      void this.#measure(this.#watch.signal);
    }
    return subscription;
  }

  /** Tells every subscriber to connect again, because the server ends. */
  resyncAll(): void {
    this.#options.stream.resync('server_stopping');
  }

  [Symbol.dispose](): void {
    this.#rest();
  }

  async #measure(gone: AbortSignal): Promise<void> {
    const data = await this.#options.load();
    if (gone.aborted) return;
    if (data.sampledAt !== this.#sampledAt) this.#options.stream.publish({ type: 'server.load', data });
    this.#sampledAt = data.sampledAt;
    this.#timer = setTimeout(() => void this.#measure(gone), this.#everyMs).unref();
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#watch?.abort();
    this.#watch = undefined;
    this.#sampledAt = '';
  }
}
