import type { WorkspaceId } from '#src/core/ids.ts';
import type { Store } from '#storage/store.ts';
import { connectorOf, parseConnection } from './connection-schema.ts';
import { Datasources } from './datasources.ts';
import { type DriverLoader, installedDrivers } from './drivers.ts';
import { createEgress } from './egress.ts';
import { DatasourceGrants } from './grants.ts';
import { KeyHolder } from './key-holder.ts';
import { probeConnection } from './probe.ts';

export interface DatasourcePlaneOptions {
  readonly store: Store;
  readonly keyringFile: string;
  /** The host this server listens on, as it is set. */
  readonly listenHost: string;
  readonly ownPort: () => number | undefined;
  readonly egressAllow: readonly string[] | undefined;
  readonly workspaceFiles: (workspaceId: WorkspaceId) => string;
  readonly drivers?: DriverLoader;
}

export interface DatasourcePlane {
  readonly datasources: Datasources;
  readonly grants: DatasourceGrants;
  readonly keys: KeyHolder;
}

/** Puts the parts of the datasource plane together. Throws `KeyringError` when the keyring does not fit the store. */
export async function openDatasources(options: DatasourcePlaneOptions): Promise<DatasourcePlane> {
  const { store, keyringFile, listenHost, ownPort, egressAllow, workspaceFiles } = options;
  const { drivers = installedDrivers } = options;
  const keys = await KeyHolder.open(store, keyringFile);
  const egress = createEgress({ listenHost, ownPort, allow: egressAllow });
  const datasources = new Datasources({
    store,
    keyring: () => keys.ring,
    connections: {
      parse: parseConnection,
      isEmbedded: (kind) => connectorOf(kind).embedded,
      probe: (workspaceId, connection) =>
        probeConnection(connection, { egress, drivers, filesDirectory: workspaceFiles(workspaceId) }),
    },
    onGone: () => undefined,
  });
  return { datasources, grants: new DatasourceGrants(store, datasources), keys };
}
