/** Data that are loaded while a component is shown and the page is visible. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { isVisible } from './visible.ts';

export interface Data<T> {
  /** Undefined until the first load has succeeded. */
  readonly value: T | undefined;
  /** The reason why the last load failed. */
  readonly error: unknown;
  reload(): void;
}

interface Occasions {
  /** A change of this number causes another load. */
  readonly changes?: number;
  /** The pause after which the data are loaded again, while the page is visible. */
  readonly everyMs?: number | undefined;
}

/**
 * Returns the data that `load` resolves with. A change of `key` drops the data and loads again. At most one request is sent at a
 * time, and none while the page is hidden.
 */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  key: string,
  { changes = 0, everyMs }: Occasions = {},
): Data<T> {
  const state = useSignal<{ value?: T; error?: unknown }>({});
  const latest = useRef(load);
  latest.current = load;
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
          const value = await latest.current(gone.signal);
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

/** Calls `onChange` when the number differs from the number of the previous call. */
export function useChange(number: number, onChange: () => void): void {
  const last = useRef(number);
  useEffect(() => {
    if (last.current === number) return;
    last.current = number;
    onChange();
  }, [number]);
}
