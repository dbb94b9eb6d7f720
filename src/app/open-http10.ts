/**
 * Opens the port for HTTP/1.0. Of several workers it is opened by the one that owns `'*'`, and moves when that one has ended. The
 * primary keeps the port bound, so that no other program can take it while it moves.
 */
import { closeSync } from 'node:fs';
import type { Cluster } from '#src/cluster/cluster.ts';
import type { AsyncDisposableStack } from '#src/core/async-disposable-stack.ts';
import type { Log } from '#src/core/log.ts';
import { type Http10Relay, type Http10RelayOptions, openHttp10Relay } from '#src/http/edge/http10-relay.ts';
import { listenOnInherited } from '#src/os/listening-socket.ts';
import { SYSTEM } from '#storage/keys.ts';

/** How often a worker looks whether the port is its own by now, and whether the one before has closed it. */
const LOOK_EVERY_MS = 500;

export interface Http10PortOptions extends Http10RelayOptions {
  readonly cluster: Cluster;
  readonly log: Pick<Log, 'warn'>;
}

/** Resolves with what refuses new connections; with undefined when no port is configured. `stack` closes the port. */
export async function openHttp10Port(
  { port, ...others }: Omit<Http10PortOptions, 'port'> & { readonly port: number | undefined },
  stack: AsyncDisposableStack,
): Promise<Pick<Http10Relay, 'stopListening'> | undefined> {
  if (port === undefined) return undefined;
  const options = { ...others, port };
  if (options.cluster.size === 1) return stack.use(await openHttp10Relay(options));
  // At once, since notebook code could listen in its place. Connections wait for the worker that has the port.
  if (options.descriptor !== undefined) await listenOnInherited(options.descriptor);
  return stack.use(new MovingPort(options));
}

/** The port of a server with several workers, as one of them has it or not. */
class MovingPort implements Disposable {
  readonly #options: Http10PortOptions;
  readonly #timer: NodeJS.Timeout;
  /** Also those that take no new connections any more, because another worker has the port. */
  readonly #relays: Http10Relay[] = [];
  #isListening = false;
  #isOpening = false;
  #isClosed = false;
  #hasWarned = false;

  constructor(options: Http10PortOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#look(), LOOK_EVERY_MS).unref();
    options.cluster.onSlotsTaken(() => void this.#look());
    void this.#look();
  }

  stopListening(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#leave();
    if (this.#options.descriptor !== undefined) closeSync(this.#options.descriptor);
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const isOwn = !this.#isClosed && this.#options.cluster.owns(SYSTEM);
    if (!isOwn) this.#leave();
    if (!isOwn || this.#isListening || this.#isOpening) return;
    this.#isOpening = true;
    try {
      this.#relays.push(await openHttp10Relay(this.#options));
      this.#isListening = true;
      this.#hasWarned = false;
      if (this.#isClosed) this.#leave();
    } catch (error) {
      // The worker before may not have closed it yet.
      if (!this.#hasWarned)
        this.#options.log.warn({ err: error }, 'the port for HTTP/1.0 cannot be opened yet');
      this.#hasWarned = true;
    } finally {
      this.#isOpening = false;
    }
  }

  #leave(): void {
    this.#isListening = false;
    for (const relay of this.#relays) relay.stopListening();
  }

  [Symbol.dispose](): void {
    this.stopListening();
    for (const relay of this.#relays) relay[Symbol.dispose]();
  }
}
