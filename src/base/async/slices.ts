/**
 * Divides long work into slices, so that it does not block the event loop. All such work of the
 * process shares one slice in each turn, so more work does not delay other code for longer. The
 * owners of the work, which are workspaces, have the slice in turns, so the work of one owner does not wait for all the work of another.
 */

/**
 * The size, in bytes of data or characters of text, up to which JSON is read or written and data is
 * hashed at once. That takes a millisecond or two. Larger data is processed in slices.
 */
export const MAX_SIZE_AT_ONCE = 256 * 1024;

/** How long one slice may hold the event loop. A step that has begun is finished. */
const SLICE_MS = 4;

/** Works until the slice ends. Returns whether the work has ended. */
type Slice = (endMs: number) => boolean;

/** The owner of work that is done for no workspace, or for a workspace that the caller does not know. */
const NOBODY = '';

/**
 * The waiting work, by its owner. The first owner has the next slice. All apps of the process share this
 * state, because they share one event loop.
 */
const waiting = new Map<string, Slice[]>();
let isScheduled = false;

/**
 * Resolves with the return value of `steps`, and rejects with its error. A step should take no more
 * than a millisecond or two. `workspaceId` names the owner of the work.
 */
export function inSlices<T>(steps: Iterator<unknown, T>, workspaceId: string = NOBODY): Promise<T> {
  return new Promise((resolve, reject) => {
    wait(workspaceId, (endMs) => {
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

function wait(owner: string, slice: Slice): void {
  const slices = waiting.get(owner);
  if (slices === undefined) waiting.set(owner, [slice]);
  else slices.push(slice);
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(work);
}

function work(): void {
  isScheduled = false;
  const [next] = waiting;
  if (next === undefined) return;
  const [owner, slices] = next;
  const slice = slices.shift()!;
  if (!slice(performance.now() + SLICE_MS)) slices.push(slice);
  waiting.delete(owner);
  if (slices.length > 0) waiting.set(owner, slices); // after the other owners
  if (waiting.size > 0) schedule();
}
