/** What a view shows of the server: loaded when it is shown, again when it may have changed, and dropped with the view. */
import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Client } from '#src/client/client.ts';
import { place } from './route.ts';
import { session } from './session.ts';
import { isVisible } from './visible.ts';

export interface Data<T> {
  /** Undefined until it was loaded for the first time. */
  readonly value: T | undefined;
  /** Why it could not be loaded the last time. */
  readonly error: unknown;
  reload(): void;
}

/** Returns the client of the workspace in which the user is. It exists wherever a view is shown. */
export function useClient(): Client {
  const client = session.value?.clientOf(place.value.workspaceId);
  if (client === undefined) throw new Error('Nobody has signed in.');
  return client;
}

/**
 * Returns what `load` resolves with, for as long as `inputs` are the same. With `everyMs` it is loaded again that long after
 * each time, while somebody looks.
 */
export function useData<T>(
  load: (client: Client, signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
  { everyMs }: { readonly everyMs?: number } = {},
): Data<T> {
  const client = useClient();
  const state = useSignal<{ value?: T; error?: unknown }>({});
  const turn = useSignal(0);
  const latest = useRef(load);
  latest.current = load;
  const key = JSON.stringify([place.value.workspaceId, ...inputs]);
  const shown = useRef(key);
  if (shown.current !== key) {
    shown.current = key;
    state.value = {};
  }
  useEffect(() => {
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const attempt = async () => {
      if (!isVisible.peek() && everyMs !== undefined) {
        timer = setTimeout(attempt, everyMs);
        return;
      }
      try {
        const value = await latest.current(client, gone.signal);
        if (!gone.signal.aborted) state.value = { value };
      } catch (error) {
        if (!gone.signal.aborted) state.value = { ...state.peek(), error };
      }
      if (everyMs !== undefined && !gone.signal.aborted) timer = setTimeout(attempt, everyMs);
    };
    void attempt();
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [key, turn.value, everyMs]);
  return {
    value: state.value.value,
    error: state.value.error,
    reload: () => {
      turn.value++;
    },
  };
}

/** Calls `follow` while the component is shown and somebody looks. Its signal aborts when one of both ends. */
export function useWhileSeen(
  follow: (signal: AbortSignal) => Promise<void>,
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
    latest.current(gone.signal).catch(() => {});
    return () => gone.abort();
  });
}
