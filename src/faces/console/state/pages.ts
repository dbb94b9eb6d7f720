/**
 * A list that the server sends in pages. The first page is loaded at once, each other page when the user scrolls near it.
 */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Client } from '#src/contract/client/client.ts';
import type { Page } from '#src/contract/wire/shape.ts';
import { type Renewal, useClient, useRenewal } from './data.ts';
import { useChange } from './loaded.ts';
import { place } from './route.ts';
import { isVisible } from './visible.ts';

export interface Pages<Item, P extends Page<Item>> {
  /** Undefined until the first page has arrived. */
  readonly items: readonly Item[] | undefined;
  /** The last answer of the server for the first page. */
  readonly head: P | undefined;
  readonly isComplete: boolean;
  readonly error: unknown;
  /** Loads the next page, if there is one and no page is being loaded. */
  more(): void;
  /** Loads the shown pages again. */
  reload(): void;
  /** Loads the first page again after a short pause, unless the user has scrolled beyond it. */
  refresh(): void;
  /** Replaces items in place. `change` returns the new item, or the same item, or undefined to remove the item. */
  patch(change: (item: Item) => Item | undefined): void;
}

interface State<Item, P> {
  readonly items?: readonly Item[];
  readonly head?: P;
  readonly cursor?: string | null;
  readonly error?: unknown;
}

const REFRESH_PAUSE_MS = 1_000;

type LoadPage<P> = (client: Client, after: string | undefined, signal: AbortSignal) => Promise<P>;

/** Returns a list in pages. Its first page is loaded again after changes, as long as the user has not scrolled beyond it. */
export function usePages<Item, P extends Page<Item>>(
  load: LoadPage<P>,
  inputs: readonly unknown[],
  renewal: Renewal = {},
): Pages<Item, P> {
  const client = useClient();
  const state = useSignal<State<Item, P>>({});
  const [changes, everyMs] = useRenewal(renewal);
  const latest = useRef(load);
  latest.current = load;
  const loading = useRef<AbortController | undefined>(undefined);
  const key = JSON.stringify([place.value.workspaceId, ...inputs]);
  const shown = useRef(key);
  if (shown.current !== key) {
    shown.current = key;
    state.value = {};
  }

  const fetchPage = async (after: string | undefined) => {
    loading.current?.abort();
    const gone = new AbortController();
    loading.current = gone;
    try {
      const page = await latest.current(client, after, gone.signal);
      if (gone.signal.aborted) return;
      const before = after === undefined ? [] : (state.peek().items ?? []);
      const head = after === undefined ? page : state.peek().head;
      state.value = { items: [...before, ...page.items], cursor: page.nextCursor, ...(head && { head }) };
    } catch (error) {
      if (!gone.signal.aborted) state.value = { ...state.peek(), error };
    } finally {
      if (loading.current === gone) loading.current = undefined;
    }
  };

  const soon = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const refreshNow = () => {
    const { items, head } = state.peek();
    const isOnFirst = items === undefined || items.length <= (head?.items.length ?? 0);
    if (!isOnFirst) return;
    if (loading.current === undefined) void fetchPage(undefined);
    else refreshSoon();
  };
  const refreshSoon = () => {
    soon.current ??= setTimeout(() => {
      soon.current = undefined;
      refreshNow();
    }, REFRESH_PAUSE_MS);
  };
  useChange(changes, refreshNow);

  const isSeen = isVisible.value;
  useEffect(() => {
    if (!isSeen) return;
    if (state.peek().items === undefined) void fetchPage(undefined);
    else refreshNow();
    const timer = everyMs === undefined ? undefined : setInterval(refreshNow, everyMs);
    return () => {
      clearInterval(timer);
      clearTimeout(soon.current);
      soon.current = undefined;
      loading.current?.abort();
    };
  }, [key, everyMs, isSeen]);

  const { items, head, cursor, error } = state.value;
  return {
    items,
    head,
    isComplete: cursor === null,
    error,
    more: () => {
      if (typeof cursor === 'string' && loading.current === undefined) void fetchPage(cursor);
    },
    reload: () => void fetchPage(undefined),
    refresh: refreshSoon,
    patch: (change) => {
      const present = state.peek().items;
      if (present !== undefined)
        state.value = { ...state.peek(), items: present.flatMap((item) => change(item) ?? []) };
    },
  };
}
