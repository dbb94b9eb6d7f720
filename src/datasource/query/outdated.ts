/** What workers keep of a datasource, when it is replaced or deleted: sessions in several of them may have used it. */
import type { Announce, Cluster } from '#src/cluster/cluster.ts';
import type { WorkspaceId } from '#src/core/ids.ts';
import type { Store } from '#storage/store.ts';

/** Drops what is kept of a datasource. */
type Drop = (workspaceId: WorkspaceId, slug: string) => void;

interface Workers {
  readonly store: Pick<Store, 'refresh'>;
  readonly cluster: Pick<Cluster, 'onAsked'>;
  readonly announce: Announce;
}

/**
 * Returns what is called in the turn in which a datasource is replaced or deleted: this worker drops what it keeps at once, and the
 * others once the change is committed and before it is answered. From then on they read the datasource as it is, so none of them
 * keeps something of it again.
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
