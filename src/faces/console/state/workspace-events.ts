/** One stream about the workspace for all views: counts, refusals, and the kinds of actors that have changed. */
import { useEffect } from 'preact/hooks';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import { counts, isTold, noteChanges, noteGap, noteRefusal } from './changes.ts';
import { persistently } from './persistently.ts';
import { place } from './route.ts';
import { onSignOut } from './sign-in.ts';
import { isVisible } from './visible.ts';

/** The shortest time between two reactions to changes, such as loading a list again, in milliseconds. */
const MIN_GAP_MS = 2_000;
/** The stream survives this pause, so that it continues when the user goes from one view to the next. */
const LINGER_MS = 200;

let users = 0;
let followed: { readonly workspaceId: string; readonly gone: AbortController } | undefined;

// The next user must not continue the stream of the previous user.
onSignOut(() => {
  followed?.gone.abort();
  followed = undefined;
});

/** If `isNeeded`, follows the workspace while the component is shown and the page is visible. */
export function useWorkspaceEvents(client: Client, isNeeded: boolean): void {
  const { workspaceId } = place.value;
  const isSeen = isVisible.value;
  useEffect(() => {
    if (!isNeeded || !isSeen) return;
    users++;
    if (followed?.workspaceId !== workspaceId) {
      followed?.gone.abort();
      followed = { workspaceId, gone: new AbortController() };
      const { signal } = followed.gone;
      persistently((isAgain) => follow(client, workspaceId, signal, isAgain), signal).catch(() => {});
    }
    return () => {
      users--;
      setTimeout(() => {
        if (users > 0) return;
        followed?.gone.abort();
        followed = undefined;
      }, LINGER_MS);
    };
  }, [isNeeded, isSeen, workspaceId]);
}

async function follow(
  client: Client,
  workspaceId: string,
  gone: AbortSignal,
  isAgain: boolean,
): Promise<void> {
  if (!isAgain) counts.value = undefined;
  const noteKinds = spaced(gone, noteChanges);
  let isFirst = !isAgain;
  try {
    for await (const event of client.followActors({ moves: false, signal: gone })) {
      if (event.type === 'actors.snapshot') {
        isTold.value = true;
        counts.value = event.data.counts;
        // The shown data were loaded when the stream began, so they need not be loaded now.
        if (!isFirst && event.resumed !== true) noteGap();
        isFirst = false;
      } else if (event.type === 'actors.counts') {
        counts.value = event.data.counts;
        noteKinds(event.data.moved);
      } else if (event.type === 'actor.refused') {
        noteRefusal(workspaceId, { time: event.time, ...event.data });
      }
    }
  } catch (error) {
    if (!gone.aborted && error instanceof ApiError && error.status === 403) isTold.value = false;
    throw error;
  }
}

/**
 * Returns a function that collects kinds for `note`. `note` is called at once with the first kind, and after a pause with all
 * later kinds.
 */
function spaced(gone: AbortSignal, note: (kinds: Iterable<string>) => void) {
  const collected = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let notedAtMs = Number.NEGATIVE_INFINITY;
  gone.addEventListener('abort', () => clearTimeout(timer));
  return (kinds: readonly string[]): void => {
    for (const kind of kinds) collected.add(kind);
    timer ??= setTimeout(
      () => {
        timer = undefined;
        notedAtMs = performance.now();
        note(collected);
        collected.clear();
      },
      Math.max(0, notedAtMs + MIN_GAP_MS - performance.now()),
    );
  };
}
