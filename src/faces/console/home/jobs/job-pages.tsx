import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import type { Page } from '#src/contract/wire/shape.ts';
import { type Data, useLoaded } from '../../state/loaded.ts';
import { comebacks } from '../../state/server.ts';

/** How often a shown page is loaded again. */
export const EVERY_MS = 5_000;

/** One page of a list, and the buttons that lead to the others. */
export interface ShownPage<P> extends Data<P> {
  readonly buttons: ComponentChildren;
}

/**
 * Returns one page of a list, newest first. Only the shown page is loaded again, so that a long list costs one request, too, and
 * the page is the server's again after a cut.
 */
export function usePage<P extends Page<unknown>>(
  load: (after: string | undefined, signal: AbortSignal) => Promise<P>,
  inputs: readonly string[],
): ShownPage<P> {
  /** The cursors of the pages before the shown page, and its own. */
  const cursors = useSignal<readonly string[]>([]);
  const after = cursors.value.at(-1);
  const page = useLoaded((signal) => load(after, signal), JSON.stringify([...inputs, after]), {
    changes: comebacks.value,
    everyMs: EVERY_MS,
  });
  const next = page.value?.nextCursor ?? null;
  // Once there were buttons they stay, so that a pressed button keeps the focus while the page is loaded.
  const hasButtons = useRef(false);
  hasButtons.current ||= next !== null;
  const buttons = hasButtons.current && (
    <div class="buttons">
      <button
        type="button"
        aria-disabled={after === undefined}
        onClick={() => {
          cursors.value = cursors.value.slice(0, -1);
        }}
      >
        Newer
      </button>
      <button
        type="button"
        aria-disabled={next === null}
        onClick={() => {
          if (next !== null) cursors.value = [...cursors.value, next];
        }}
      >
        Older
      </button>
    </div>
  );
  return { ...page, buttons };
}
