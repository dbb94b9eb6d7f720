/** Opens the packages that notebooks and workspaces ask for. */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { Config } from '#src/base/config/config.ts';
import { createEgress, isLoopbackHost } from '#src/datasource/egress/egress.ts';
import { sessionsOfAll } from '#src/operate/operators/kernels-of-all.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import { IndexProxy } from '#src/workspace/packages/index-proxy.ts';
import { KernelsWithPackages } from '#src/workspace/packages/kernels-with-packages.ts';
import { PackageInstaller } from '#src/workspace/packages/package-installer.ts';
import { type OtherWorkers, PackageSets } from '#src/workspace/packages/package-sets.ts';
import { WorkspacePackages } from '#src/workspace/packages/workspace-packages.ts';
import type { Ground } from './ground.ts';
import type { Late } from './late-planes.ts';

export interface OpenedPackages {
  /** Starts kernels with the packages that notebooks ask for. */
  readonly kernels: KernelsWithPackages;
  /** The packages that all notebooks of a workspace have. */
  readonly workspaces: WorkspacePackages;
}

/**
 * Returns the function that starts kernels with their packages, and the packages of workspaces. `stack` takes ownership of their
 * resources.
 */
export function openPackages(
  { config, cluster, log, prerequisites, ownPorts, store }: Ground,
  late: Late,
  stack: AsyncDisposableStack,
): OpenedPackages {
  const { host, plainHost, directory } = prerequisites;
  stack.use(plainHost);
  const installer = new PackageInstaller({
    host,
    python: config.python,
    index: config.packageIndex,
    builds: config.packagesBuild ? { timeoutMs: config.packagesBuildTimeoutS * 1000 } : null,
    openProxy: () => {
      const egress = createEgress({ listenHost: config.host, ownPorts, allow: allowedTargets(config) });
      return IndexProxy.open(config.packageIndex, (target, port, signal) =>
        egress.admit(target, port, signal),
      );
    },
  });
  const sets = config.packages
    ? stack.use(
        new PackageSets({
          root: directory.packagesPath,
          installer,
          maxBytes: config.packagesMaxMb * 2 ** 20,
          log,
          others: othersOf(cluster),
        }),
      )
    : undefined;
  cluster.onAsked('packages-in-use', () => sets?.inUse() ?? []);
  const openSessions = sessionsOfAll(
    (workspaceId) => late.planes.kernelsInUse.sessionsOf(workspaceId),
    cluster,
  );
  return {
    kernels: new KernelsWithPackages({ host, plainHost: () => plainHost.ready(), sets, log }),
    workspaces: new WorkspacePackages(store, sets, openSessions),
  };
}

function othersOf(cluster: Cluster): OtherWorkers | undefined {
  const { incarnation } = cluster;
  if (incarnation === undefined) return undefined;
  return {
    own: incarnation,
    lives: (worker) => cluster.livesElsewhere(worker),
    inUse: () => inUse(cluster),
  };
}

async function inUse(cluster: Cluster): Promise<ReadonlySet<string>> {
  const answers = await cluster.askOthers('packages-in-use', null);
  return new Set((answers as readonly (readonly string[])[]).flat());
}

/** The operator has named the index, so it may be reached at any address; the egress rules apply to everything else. */
function allowedTargets({ host, egressAllow, packageIndex }: Config): readonly string[] | undefined {
  if (egressAllow === undefined && isLoopbackHost(host)) return undefined;
  return [...(egressAllow ?? []), new URL(packageIndex).hostname.replace(/^\[|\]$/g, '')];
}
