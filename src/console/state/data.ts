/**
 * Data of the server for a view: loaded when the view is shown, loaded again when it may have changed, and dropped with
 * the view.
 */
import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Client } from '#src/client/client.ts';
import { changesOf, isTold } from './changes.ts';
import { persistently } from './persistently.ts';
import { place } from './route.ts';
import { comebacks } from './server.ts';
import { session } from './session.ts';
import { isVisible } from './visible.ts';
import { useWorkspaceEvents } from './workspace-events.ts';

export interface Data<T> {
  /** Undefined until it was loaded for the first time. */
  readonly value: T | undefined;
  /** The reason why it could not be loaded the last time. */
  readonly error: unknown;
  reload(): void;
}

/** Returns the client of the workspace in which the user is. It exists wherever a view is shown. */
export function useClient(): Client {
  const client = session.value?.clientOf(place.value.workspaceId);
  if (client === undefined) throw new Error('Nobody has signed in.');
  return client;
}

/** The occasions on which the data are loaded again. */
export interface Renewal {
  /**
   * Kinds of actors whose changes load the data again. Users who get no changes from the server load at intervals
   * instead.
   */
  readonly follows?: readonly string[];
  /** Loads again this long after each time, while the page is visible. */
  readonly everyMs?: number;
}

/** How often the console loads again for users who get no changes from the server. */
export const UNTOLD_EVERY_MS = 3_000;

/** Returns a number that changes when it is time to load again, and how long after each time it is, if it is. */
export function useRenewal({
  follows,
  everyMs,
}: Renewal): readonly [changes: number, everyMs: number | undefined] {
  useWorkspaceEvents(useClient(), follows !== undefined);
  const isUntold = follows !== undefined && isTold.value === false;
  const changes = follows === undefined ? 0 : changesOf(follows);
  return [changes + comebacks.value, isUntold ? UNTOLD_EVERY_MS : everyMs];
}

/** Calls `onChange` when the number is another one than the last time. */
export function useChange(number: number, onChange: () => void): void {
  const last = useRef(number);
  useEffect(() => {
    if (last.current === number) return;
    last.current = number;
    onChange();
  }, [number]);
}

/**
 * Returns the data that `load` resolves with, while `inputs` stay the same. Nothing is loaded while the page is hidden.
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
      // A request under way is not aborted: on a slow server nothing would ever be shown otherwise.
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

/**
 * Calls `follow` while the component is shown and somebody looks. Its signal aborts when either ends. After a passing error it is
 * called again, with `isAgain`.
 */
export function useWhileSeen(
  follow: (signal: AbortSignal, isAgain: boolean) => Promise<void>,
  inputs: readonly unknown[],
): void {
  const latest = useRef(follow);
  latest.current = follow;
  const key = useSignal('');
  key.value = JSON.stringify(inputs);
  useSignalEffect(() => {
    void key.value;
    if (!isVisible.value) return;
    const gone = new AbortController();
    persistently((isAgain) => latest.current(gone.signal, isAgain), gone.signal).catch(() => {});
    return () => gone.abort();
  });
}
