/**
 * Promises that nobody awaits. A rejection of one would end the process, and all kernels with it, so each is
 * given to `unawaited`, which takes the rejection and reports it as a fault of the server. The lint refuses
 * the operator `void`, with which a rejection would be ignored by the reader and not by Node.js.
 */

/**
 * Takes a rejection, and the place of the promise: its file and its purpose. There are few places, so a place
 * may be the label of a metric.
 */
export type UnawaitedFaultListener = (error: unknown, place: string) => void;

/** The line of the log about such a fault. */
export const UNAWAITED_FAULT = 'something that no request waits for has failed';

/** All apps of the process share the listeners: a promise that nobody awaits does not tell to which app it belongs. */
const listeners = new Set<UnawaitedFaultListener>();

/** Calls `listener` for each rejection of a promise that nobody awaits, until the result is disposed of. */
export function onUnawaitedFault(listener: UnawaitedFaultListener): Disposable {
  listeners.add(listener);
  return {
    [Symbol.dispose]: () => {
      listeners.delete(listener);
    },
  };
}

/**
 * Takes the rejection of a promise that nobody awaits. Without any listener, as in a program that has no log yet, it is thrown as an
 * uncaught exception.
 */
export function unawaited(promise: PromiseLike<unknown> | undefined, place: string): void {
  promise?.then(undefined, (error: unknown) => {
    if (listeners.size === 0)
      queueMicrotask(() => {
        throw error;
      });
    for (const listener of listeners) listener(error, place);
  });
}
