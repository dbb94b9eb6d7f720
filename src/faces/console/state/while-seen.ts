import { useSignal, useSignalEffect } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { persistently } from './persistently.ts';
import { isVisible } from './visible.ts';

/**
 * Calls `follow` when the component is shown and the page is visible. The signal aborts when the component or the page
 * disappears. After a temporary error, `follow` is called again with `isAgain`.
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
