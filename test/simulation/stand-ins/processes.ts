/** The signals that simulated processes handle. */
import { type Life, world } from '../world/world.ts';

type Handler = (signal: string) => void;

const handlers = new WeakMap<Life, Map<string, Handler[]>>();

/** A process handles a signal from now on. */
export function onSignal(life: Life, signal: string, act: Handler): void {
  let own = handlers.get(life);
  if (own === undefined) {
    own = new Map();
    handlers.set(life, own);
  }
  own.set(signal, [...(own.get(signal) ?? []), act]);
}

/** Sends a signal that the process handles. */
export function sendSignal(life: Life, signal: string): void {
  world().after(
    0,
    () => {
      for (const act of handlers.get(life)?.get(signal) ?? []) act(signal);
    },
    life,
  );
}
