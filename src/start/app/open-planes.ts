/** Opens the planes that users work with: datasources, packages, notebooks and agents. */

import { type AgentPlane, openAgents } from '#src/agent/open-agents.ts';
import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { SecretStore } from '#src/datasource/keys/secret-store.ts';
import { type DatasourcePlane, openDatasources } from '#src/datasource/open-datasources.ts';
import { AuditTrail } from '#src/people/audit/audit-trail.ts';
import { QueryAudit } from '#src/people/audit/query-audit.ts';
import type { IdentityPlane } from '#src/people/auth/open-identity.ts';
import { PageTokens } from '#src/people/auth/page-tokens.ts';
import { Environments } from '#src/runtime/sessions/environments.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import type { Ground } from './ground.ts';
import { KernelsInUse } from './kernels-in-use.ts';
import { Late } from './late-planes.ts';
import { openFiles } from './open-files.ts';
import { type HookPlane, openHooks } from './open-hooks.ts';
import { type JobPlane, openJobs } from './open-jobs.ts';
import { openLocalModel } from './open-local-model.ts';
import { type NotebookPlane, openNotebooks } from './open-notebooks.ts';
import { type OpenedPackages, openPackages } from './open-packages.ts';
import { openRuns } from './open-runs.ts';

/** The ground with the runs, and the planes on it. */
export interface Planes extends Ground, RunPlaneContext {
  readonly log: Ground['log'];
  readonly audit: AuditTrail;
  readonly datasources: DatasourcePlane;
  readonly packages: OpenedPackages;
  readonly files: WorkspaceFiles;
  readonly notebooks: NotebookPlane;
  readonly kernelsInUse: KernelsInUse;
  readonly agents: AgentPlane;
  readonly jobs: JobPlane;
  readonly hooks: HookPlane;
  /** Signing in with the identity provider; undefined when the settings name none. */
  readonly provider: ReturnType<IdentityPlane['openProvider']>;
  readonly pageTokens: PageTokens;
}

export async function openPlanes(base: Ground, stack: AsyncDisposableStack): Promise<Planes> {
  const { config, log, prerequisites, store, runtime, identity, streams, ownPorts } = base;
  const { directory, host } = prerequisites;
  const late = new Late();
  const { runs, runDeletion } = openRuns(base);
  const audit = new AuditTrail(store, (error) =>
    log.error({ err: error }, 'queries of datasources could not be noted in the audit'),
  );
  const datasources = stack.use(
    await openDatasources(base, {
      announce: identity.announce,
      audit,
      queryAudit: stack.use(new QueryAudit(audit)),
      ownPorts,
      workspaceFiles: (workspaceId) => directory.workspaceFiles(workspaceId),
      startEngine: (launch) => host.startEngine(launch),
    }),
  );
  const ground = { ...base, runs, runDeletion, environments: new Environments(runtime, store) };
  const vault = new SecretStore(store, datasources.keys);
  const packages = openPackages(ground, late, stack);
  const files = openFiles(ground, late, stack);
  const notebooks = openNotebooks(
    { ...ground, packages, files, vault, queries: datasources.queries },
    late,
    stack,
  );
  const agents = openAgents(ground, {
    makeStream: streams.makeConversationStream,
    notebooks: notebooks.forAgents,
    datasources: datasources.forAgents,
    vault,
    localModel: openLocalModel(ground, stack),
  });
  const kernelsInUse = new KernelsInUse(notebooks.actors, notebooks.liveNotebooks);
  late.fill({ agents: agents.ofNotebooks, kernelsInUse, sessions: notebooks.sessions });
  const jobs = openJobs({ ...ground, files }, notebooks, agents, stack);
  const hooks = openHooks({ ...ground, agents, notebooks, jobs, vault }, stack);
  const keys = (keyId?: string) =>
    keyId === undefined ? datasources.keys.ring : datasources.keys.ringWith(keyId);
  const provider = identity.openProvider(config, vault, keys, stack);
  const pageTokens = new PageTokens(identity.authenticator, keys);
  return {
    ...ground,
    audit,
    datasources,
    packages,
    files,
    notebooks,
    kernelsInUse,
    agents,
    jobs,
    hooks,
    provider,
    pageTokens,
  };
}
