/**
 * The load of the server as an event stream. It is measured and encoded once for all followers. Nothing is measured
 * while there are no followers.
 */

import { unawaited } from '#src/base/async/unawaited.ts';
import type { Log } from '#src/base/log/log.ts';
import type { ServerFacts, ServerLoad, ServerStreamEnvelope } from '#src/contract/wire/server.ts';
import type { EventSink, Subscription } from '#src/runtime/events/event-sink.ts';
import type { PublishedStream } from '#src/runtime/events/published-stream.ts';

export type ServerStream = PublishedStream<ServerStreamEnvelope>;

export interface ServerEventsOptions {
  readonly stream: ServerStream;
  readonly facts: () => ServerFacts;
  readonly load: () => Promise<ServerLoad>;
  readonly log: Pick<Log, 'error'>;
  readonly everyMs?: number;
}

const EVERY_MS = 2_000;

export class ServerEvents implements Disposable {
  readonly #options: ServerEventsOptions;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  /** Ends the present measuring. When the first follower comes, a new one begins. */
  #watch: AbortController | undefined;
  #sampledAt = '';
  /** Whether the last measurement failed, so that a persistent fault is logged only once. */
  #hasFailed = false;

  constructor(options: ServerEventsOptions) {
    this.#options = options;
    this.#everyMs = options.everyMs ?? EVERY_MS;
    options.stream.onEmpty(() => this.#rest());
  }

  /** Attaches a subscriber. It gets the constant facts, and then the load at each interval. */
  follow(sink: EventSink): Subscription {
    const { stream, facts } = this.#options;
    const subscription = stream.subscribe(sink, {
      replay: () => [{ type: 'server.snapshot', data: facts() }],
    });
    if (this.#watch === undefined) {
      this.#watch = new AbortController();
      unawaited(this.#measure(this.#watch.signal), 'server-events: the measurement of the load');
    }
    return subscription;
  }

  /** Makes every subscriber connect again, because the server ends. */
  resyncAll(): void {
    this.#options.stream.resync('server_stopping');
  }

  [Symbol.dispose](): void {
    this.#rest();
  }

  /**
   * Measures now and after each interval, even after a failure, until `gone` aborts. Never rejects.
   */
  async #measure(gone: AbortSignal): Promise<void> {
    try {
      const data = await this.#options.load();
      if (gone.aborted) return;
      if (data.sampledAt !== this.#sampledAt) this.#options.stream.publish({ type: 'server.load', data });
      this.#sampledAt = data.sampledAt;
      this.#hasFailed = false;
    } catch (error) {
      if (gone.aborted) return;
      this.#reportFailure(error);
    }
    this.#timer = setTimeout(
      () => unawaited(this.#measure(gone), 'server-events: the measurement of the load'),
      this.#everyMs,
    ).unref();
  }

  #reportFailure(error: unknown): void {
    if (!this.#hasFailed)
      this.#options.log.error(
        { err: error },
        'the load of the server could not be measured; its event stream goes on once it can',
      );
    this.#hasFailed = true;
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#watch?.abort();
    this.#watch = undefined;
    this.#sampledAt = '';
  }
}
