import type { WorkspaceId } from '#src/base/ids.ts';
import type { AuditTrail } from '#src/people/audit/audit-trail.ts';
import type { QueryAudit } from '#src/people/audit/query-audit.ts';
import type { Announce } from '#src/runtime/homes/cluster.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { DatasourceRecord } from '#storage/records/datasources.ts';
import { connectorOf, parseConnection } from './connectors/connection-schema.ts';
import { installedDrivers } from './connectors/drivers.ts';
import { Datasources } from './datasources.ts';
import { createEgress } from './egress/egress.ts';
import type { StartEngine } from './embedded/engine-port.ts';
import { Engines } from './embedded/engines.ts';
import { DatasourceGrants } from './grants.ts';
import { KeyringStore } from './keys/keyring-store.ts';
import { probeConnection, untestedWarnings } from './probe.ts';
import { Descriptions } from './query/descriptions.ts';
import { LinkPool } from './query/link-pool.ts';
import { dropInAllWorkers } from './query/outdated.ts';
import { Queries } from './query/queries.ts';
import { QueriesForAgents } from './query/queries-for-agents.ts';

/** The parts of the server that the datasource plane needs. */
export interface DatasourcePlaneOptions {
  readonly announce: Announce;
  readonly audit: AuditTrail;
  readonly queryAudit: QueryAudit;
  readonly ownPorts: () => readonly number[];
  readonly workspaceFiles: (workspaceId: WorkspaceId) => string;
  /** Starts the process of a database that is a file. */
  readonly startEngine: StartEngine;
}

/** The parts of the datasource plane that the rest of the server uses. Disposing of it closes every connection. */
export interface DatasourcePlane extends AsyncDisposable {
  readonly datasources: Datasources;
  readonly grants: DatasourceGrants;
  readonly keys: KeyringStore;
  readonly queries: Queries;
  readonly forAgents: QueriesForAgents;
}

/** The time limit for opening one connection. */
const OPEN_DEADLINE_MS = 10_000;

/** Opens the datasource plane. Throws `KeyringError` when the keyring does not fit the store. */
export async function openDatasources(
  { config, store, cluster, metrics, tracer }: PlaneContext,
  { announce, audit, queryAudit, ownPorts, workspaceFiles, startEngine }: DatasourcePlaneOptions,
): Promise<DatasourcePlane> {
  const keys = await KeyringStore.open(store, config.keyringFile, cluster);
  const egress = createEgress({ listenHost: config.host, ownPorts, allow: config.egressAllow });
  const engines = new Engines(startEngine);
  const contextOf = (workspaceId: WorkspaceId) => ({
    egress,
    drivers: installedDrivers,
    engines,
    filesDirectory: () => workspaceFiles(workspaceId),
  });
  const openLink = (workspaceId: WorkspaceId, record: DatasourceRecord) =>
    connectorOf(record.kind).open(
      datasources.open(workspaceId, record),
      contextOf(workspaceId),
      AbortSignal.timeout(OPEN_DEADLINE_MS),
    );
  const pool = new LinkPool(openLink, { workers: cluster.size });
  const descriptions = new Descriptions();
  const drop = (workspaceId: WorkspaceId, slug: string) => {
    pool.drop(workspaceId, slug);
    descriptions.drop(workspaceId, slug);
  };
  const onGone = dropInAllWorkers(drop, { store, cluster, announce });
  const datasources: Datasources = new Datasources({
    store,
    audit,
    keys,
    connections: {
      parse: parseConnection,
      isEmbedded: (kind) => connectorOf(kind).embedded,
      probe: (workspaceId, connection) => probeConnection(connection, contextOf(workspaceId)),
      untestedWarnings,
    },
    onGone,
  });
  const queries = new Queries(store, pool, queryAudit, metrics, tracer);
  return {
    datasources,
    grants: new DatasourceGrants(store, datasources, audit),
    keys,
    queries,
    forAgents: new QueriesForAgents(datasources, queries, descriptions),
    async [Symbol.asyncDispose]() {
      engines[Symbol.dispose]();
      await pool[Symbol.asyncDispose]();
    },
  };
}
