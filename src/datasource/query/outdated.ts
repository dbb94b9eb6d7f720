/**
 * Drops the workers' caches of a datasource when it is replaced or deleted: sessions in several workers may have used
 * it.
 */

import type { WorkspaceId } from '#src/base/ids.ts';
import type { Announce, Cluster } from '#src/runtime/homes/cluster.ts';
import type { Store } from '#storage/store.ts';

/** Removes all cached data of a datasource. */
type Drop = (workspaceId: WorkspaceId, slug: string) => void;

interface Workers {
  readonly store: Pick<Store, 'refresh'>;
  readonly cluster: Pick<Cluster, 'onAsked'>;
  readonly announce: Announce;
}

/**
 * Returns the function to call in the turn in which a datasource is replaced or deleted. This worker drops its cache at once. The
 * other workers drop their caches after the commit and before the response. They then read the new state, so none of them caches
 * the old state again.
 */
export function dropInAllWorkers(drop: Drop, { store, cluster, announce }: Workers): Drop {
  cluster.onAsked('datasource-gone', (payload) => {
    const { workspaceId, slug } = payload as { readonly workspaceId: WorkspaceId; readonly slug: string };
    store.refresh();
    drop(workspaceId, slug);
    return true;
  });
  return (workspaceId, slug) => {
    drop(workspaceId, slug);
    announce('datasource-gone', { workspaceId, slug });
  };
}
