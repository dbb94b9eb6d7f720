import type { Store } from '#storage/store.ts';

/** The part of a store that pages use, for items of which all are on disk. */
export const everythingIsOnDisk: Pick<Store, 'durable' | 'observe'> = {
  durable: () => undefined,
  observe: (read, ...of) => ({ result: read(...of), uncommitted: undefined }),
};
