/**
 * Data of the server for a view. The data are loaded when the view is shown, loaded again when they may have changed, and dropped
 * with the view.
 */
import type { Client } from '#src/contract/client/client.ts';
import { changesOf, isTold } from './changes.ts';
import { type Data, useLoaded } from './loaded.ts';
import { place } from './route.ts';
import { comebacks } from './server.ts';
import { user } from './sign-in.ts';
import { useWorkspaceEvents } from './workspace-events.ts';

/** Returns the client of the workspace in which the user is. It exists wherever a view is shown. */
export function useClient(): Client {
  const client = user.value?.clientOf(place.value.workspaceId);
  if (client === undefined) throw new Error('Nobody has signed in.');
  return client;
}

/** The occasions on which the data are loaded again. */
export interface Renewal {
  /**
   * Kinds of actors whose changes cause another load. For users to whom the server sends no changes, the data are loaded at
   * intervals instead.
   */
  readonly follows?: readonly string[];
  /** The pause after which the data are loaded again, while the page is visible. */
  readonly everyMs?: number;
}

/** How often data are loaded again for users to whom the server sends no changes. */
export const UNTOLD_EVERY_MS = 3_000;

/**
 * Returns a number that changes when it is time to load again, and the interval between loads if
 * there is one.
 */
export function useRenewal({
  follows,
  everyMs,
}: Renewal): readonly [changes: number, everyMs: number | undefined] {
  useWorkspaceEvents(useClient(), follows !== undefined);
  const isUntold = follows !== undefined && isTold.value === false;
  const changes = follows === undefined ? 0 : changesOf(follows);
  return [changes + comebacks.value, isUntold ? UNTOLD_EVERY_MS : everyMs];
}

/**
 * Returns the data that `load` resolves with. A change of `inputs` drops the data and loads again. Nothing is loaded while the
 * page is hidden.
 */
export function useData<T>(
  load: (client: Client, signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
  renewal: Renewal = {},
): Data<T> {
  const client = useClient();
  const [changes, everyMs] = useRenewal(renewal);
  const key = JSON.stringify([place.value.workspaceId, ...inputs]);
  return useLoaded((signal) => load(client, signal), key, { changes, everyMs });
}
