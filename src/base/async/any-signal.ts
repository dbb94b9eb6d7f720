/**
 * The signals of each combined one. Node.js itself keeps them only weakly, so that a timeout to which nothing else refers can be
 * collected before it aborts: https://github.com/nodejs/node/issues/57736.
 */
const combined = new WeakMap<AbortSignal, readonly AbortSignal[]>();

/** Returns a signal that aborts with the first of `signals`. Takes the place of `AbortSignal.any`, which can miss a timeout. */
export function anySignal(...signals: readonly AbortSignal[]): AbortSignal {
  const one = AbortSignal.any([...signals]);
  combined.set(one, signals);
  return one;
}
