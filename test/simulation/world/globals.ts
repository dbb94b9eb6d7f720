/** Puts the clocks, timers and chance of the present world in the place of the global ones of this process, for ever. */
import { Decoder } from '@msgpack/msgpack';
import { invariant } from '#src/base/errors/invariant.ts';
import { real } from './real.ts';
import { EPOCH_MS } from './wall-clock.ts';
import { type Task, type World, world } from './world.ts';

/** The longest delay of a timer of Node.js, in milliseconds. A longer one counts as 1. */
const MAX_DELAY_MS = 2 ** 31 - 1;

type Callback = (...args: unknown[]) => void;

class WorldTimer {
  readonly #world: World = world();
  readonly #life = world().life;
  readonly #delayMs: number;
  readonly #repeats: boolean;
  readonly #act: () => void;
  #task: Task | undefined;

  constructor(act: () => void, delayMs: number, repeats: boolean) {
    this.#act = act;
    this.#delayMs = delayMs >= 1 && delayMs <= MAX_DELAY_MS ? delayMs : 1;
    this.#repeats = repeats;
    this.refresh();
  }

  refresh(): this {
    this.close();
    this.#task = this.#world.after(this.#delayMs, () => this.#fire(), this.#life);
    return this;
  }

  #fire(): void {
    this.#task = undefined;
    if (this.#repeats) this.refresh();
    this.#act();
  }

  close(): this {
    if (this.#task !== undefined) this.#task.isCancelled = true;
    this.#task = undefined;
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

class WorldImmediate {
  readonly #task: Task;

  constructor(act: () => void) {
    this.#task = world().immediately(act);
  }

  close(): void {
    this.#task.isCancelled = true;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

const cancel = (timer: unknown): void => {
  if (timer instanceof WorldTimer || timer instanceof WorldImmediate) timer.close();
};

const timers = {
  setTimeout: (act: Callback, ms = 1, ...args: unknown[]) => new WorldTimer(() => act(...args), ms, false),
  setInterval: (act: Callback, ms = 1, ...args: unknown[]) => new WorldTimer(() => act(...args), ms, true),
  setImmediate: (act: Callback, ...args: unknown[]) => new WorldImmediate(() => act(...args)),
  clearTimeout: cancel,
  clearInterval: cancel,
  clearImmediate: cancel,
};

class WorldDate extends real.Date {
  constructor(...args: [] | [number | string | Date]) {
    if (args.length === 0) super(WorldDate.now());
    else super(...args);
  }

  static override now(): number {
    return world().clock.nowMs;
  }
}

/**
 * Turns off the cache of keys that all decoders of MessagePack share. It draws chance when it is full, and what it has depends on earlier
 * simulations of this process.
 */
function forgetKeys(): void {
  const cache: unknown = Reflect.get(new Decoder(), 'keyDecoder');
  invariant(typeof Object(cache).store === 'function', 'The decoders of MessagePack share a cache.');
  Reflect.set(Object(cache), 'store', () => {});
}

/** Replaces the globals. Call it before anything else of this process uses them. */
export function installGlobals(): void {
  Object.assign(globalThis, timers, { Date: WorldDate });
  const look = () => world().look();
  Object.defineProperties(performance, {
    now: { value: look, configurable: true },
    timeOrigin: { value: EPOCH_MS, configurable: true },
  });
  forgetKeys();
  Math.random = () => world().ofServer.next();
  AbortSignal.timeout = (ms: number) => {
    const controller = new AbortController();
    const reason = () => new DOMException('The operation was aborted due to timeout', 'TimeoutError');
    setTimeout(() => controller.abort(reason()), ms);
    return controller.signal;
  };
}
