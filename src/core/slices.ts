/**
 * Divides long work into slices, so that it does not block the event loop. All such work of the
 * process shares one slice in each turn, so more work does not delay other code for longer.
 */

/**
 * The size, in bytes of data or characters of text, up to which JSON is read or written and data is
 * hashed at once. That takes a millisecond or two. Larger data is processed in slices.
 */
export const MAX_SIZE_AT_ONCE = 256 * 1024;

/** How long one slice may hold the event loop. A step that has begun is finished. */
const SLICE_MS = 4;

/** Works until the slice ends. Returns whether the work is over. */
type Slice = (endMs: number) => boolean;

const waiting: Slice[] = [];
let isScheduled = false;

/**
 * Resolves with the return value of `steps`, and rejects with its error. A step should take no more
 * than a millisecond or two.
 */
export function inSlices<T>(steps: Iterator<unknown, T>): Promise<T> {
  return new Promise((resolve, reject) => {
    waiting.push((endMs) => {
      try {
        do {
          const step = steps.next();
          if (step.done === true) {
            // Without this the waiting code would continue in this turn.
            if (performance.now() < endMs) resolve(step.value);
            else setImmediate(resolve, step.value);
            return true;
          }
        } while (performance.now() < endMs);
        return false;
      } catch (error) {
        reject(error);
        return true;
      }
    });
    schedule();
  });
}

/** Returns the return value of `steps`, without letting other work run in between. */
export function atOnce<T>(steps: Iterator<unknown, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(work);
}

function work(): void {
  isScheduled = false;
  const next = waiting.shift();
  if (next === undefined) return;
  if (!next(performance.now() + SLICE_MS)) waiting.push(next);
  if (waiting.length > 0) schedule();
}
