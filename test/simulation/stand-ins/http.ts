/**
 * `node:http` for the server of a simulation: its requests reach the receivers of hooks (`world/receivers.ts`), in drawn times. Bytes that
 * have left the server arrive even if it ends, and a server that has ended gets no answer.
 */
import { EventEmitter } from 'node:events';
import * as http from 'node:http';
import { Readable } from 'node:stream';
import { receiversOf } from '../world/receivers.ts';
import { OUTSIDE, world } from '../world/world.ts';

export * from 'node:http';

interface RequestOptions {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

const CONNECT_MS = 2;
const TRAVEL_MS = 8;
const BODY_MS = 3;

class MemoryRequest extends EventEmitter {
  readonly #world = world();
  readonly #life = world().life;
  readonly #path: string;
  readonly #options: RequestOptions;
  /** Tells the receiver that the sender waits no longer. */
  #leave: () => void = () => undefined;
  #isOver = false;

  constructor({ pathname, search }: URL, options: RequestOptions) {
    super();
    this.#path = `${pathname}${search}`;
    this.#options = options;
    const { signal } = options;
    const abort = () =>
      this.#fail(Object.assign(new Error('The operation was aborted'), { code: 'ABORT_ERR' }));
    if (signal.aborted) queueMicrotask(abort);
    else signal.addEventListener('abort', abort, { once: true });
  }

  end(body: string): this {
    const { headers } = this.#options;
    const request = { path: this.#path, headers, body, life: this.#life };
    this.#later(CONNECT_MS, () => {
      if (this.#isOver) return;
      const travelMs = this.#world.ofReceivers.next() * TRAVEL_MS;
      this.#world.after(travelMs, () => this.#arrive(request), OUTSIDE);
    });
    return this;
  }

  #arrive(request: Parameters<ReturnType<typeof receiversOf>['take']>[0]): void {
    const [received, reaction] = receiversOf(this.#world).take(request);
    if (this.#isOver) received.endedMs = this.#world.nowMs;
    this.#leave = () => {
      received.endedMs ??= this.#world.nowMs;
    };
    if (reaction === undefined) return;
    const { afterMs, status, isCut } = reaction;
    const wayMs = this.#world.ofReceivers.next() * TRAVEL_MS;
    const answer = () => {
      if (status === null) this.#fail(Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }));
      else this.#answer(status, isCut);
    };
    this.#world.after(afterMs + wayMs, () => this.#isOver || answer(), this.#life);
  }

  #answer(status: number, isCut: boolean): void {
    this.#isOver = true;
    this.#leave();
    const answer = Object.assign(new Readable({ read() {} }), { statusCode: status });
    answer.on('error', () => undefined);
    this.emit('response', answer);
    answer.push('taken');
    this.#later(BODY_MS, () => {
      if (isCut) answer.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }));
      else answer.push(null);
    });
  }

  #fail(error: Error): void {
    if (this.#isOver || this.#life.isOver) return;
    this.#isOver = true;
    this.#leave();
    this.emit('error', error);
  }

  #later(mostMs: number, act: () => void): void {
    this.#world.after(this.#world.ofReceivers.next() * mostMs, act, this.#life);
  }
}

export function request(to: URL, options: RequestOptions): MemoryRequest {
  return new MemoryRequest(to, options);
}

export default { ...http, request };
