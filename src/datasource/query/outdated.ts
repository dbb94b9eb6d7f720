/** What workers keep of a datasource, when it is replaced or deleted: sessions in several of them may have used it. */
import type { Cluster } from '#src/cluster/cluster.ts';
import type { WorkspaceId } from '#src/core/ids.ts';
import type { Store } from '#storage/store.ts';

/** Drops what is kept of a datasource. */
type Drop = (workspaceId: WorkspaceId, slug: string) => void;

/**
 * Returns what is called in the turn in which a datasource is replaced or deleted: this worker drops what it keeps at once, and the
 * others once the change is committed, so that none of them reads the datasource as it was and keeps something of it again.
 */
export function dropInAllWorkers(drop: Drop, cluster: Cluster, store: Pick<Store, 'durable'>): Drop {
  cluster.onAsked('datasource-gone', (payload) => {
    const { workspaceId, slug } = payload as { readonly workspaceId: WorkspaceId; readonly slug: string };
    drop(workspaceId, slug);
  });
  return (workspaceId, slug) => {
    drop(workspaceId, slug);
    if (cluster.size === 1) return;
    Promise.resolve(store.durable())
      .then(() => cluster.askOthers('datasource-gone', { workspaceId, slug }))
      .catch(() => undefined); // the store reports a failed commit once
  };
}
