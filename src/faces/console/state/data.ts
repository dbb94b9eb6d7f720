/**
 * Data of the server for a view. The data are loaded when the view is shown, loaded again when they may have changed, and dropped
 * with the view.
 */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Client } from '#src/contract/client/client.ts';
import { changesOf, isTold } from './changes.ts';
import { place } from './route.ts';
import { comebacks } from './server.ts';
import { user } from './sign-in.ts';
import { isVisible } from './visible.ts';
import { useWorkspaceEvents } from './workspace-events.ts';

export interface Data<T> {
  /** Undefined until the first load has succeeded. */
  readonly value: T | undefined;
  /** The reason why the last load failed. */
  readonly error: unknown;
  reload(): void;
}

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

/** Calls `onChange` when the number differs from the number of the previous call. */
export function useChange(number: number, onChange: () => void): void {
  const last = useRef(number);
  useEffect(() => {
    if (last.current === number) return;
    last.current = number;
    onChange();
  }, [number]);
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
  const state = useSignal<{ value?: T; error?: unknown }>({});
  const [changes, everyMs] = useRenewal(renewal);
  const latest = useRef(load);
  latest.current = load;
  const key = JSON.stringify([place.value.workspaceId, ...inputs]);
  const shown = useRef(key);
  if (shown.current !== key) {
    shown.current = key;
    state.value = {};
  }
  const isSeen = isVisible.value;
  const again = useRef<() => void>(() => {});
  useEffect(() => {
    if (!isSeen) return;
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isLoading = false;
    let isWanted = false;
    const renew = async () => {
      isWanted = true;
      // A running request is not aborted. Otherwise a slow server might never finish an answer.
      if (isLoading) return;
      clearTimeout(timer);
      isLoading = true;
      while (isWanted && !gone.signal.aborted) {
        isWanted = false;
        try {
          const value = await latest.current(client, gone.signal);
          if (!gone.signal.aborted) state.value = { value };
        } catch (error) {
          if (!gone.signal.aborted) state.value = { ...state.peek(), error };
        }
      }
      isLoading = false;
      if (everyMs !== undefined && !gone.signal.aborted) timer = setTimeout(renew, everyMs);
    };
    again.current = renew;
    void renew();
    return () => {
      again.current = () => {};
      clearTimeout(timer);
      gone.abort();
    };
  }, [key, everyMs, isSeen]);
  useChange(changes, () => again.current());
  return {
    value: state.value.value,
    error: state.value.error,
    reload: () => again.current(),
  };
}
