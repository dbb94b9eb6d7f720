import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { NodesWatch } from '#src/operate/operators/nodes-watch.ts';
import { openOperators } from '#src/operate/operators/open-operators.ts';
import { clusterWarnings, readinessOf } from '#src/operate/operators/readiness.ts';
import { SYSTEM } from '#storage/keys.ts';
import { controlByPrimary, controlOfNodes } from './control-of-nodes.ts';
import type { Ground } from './ground.ts';
import type { Planes } from './open-planes.ts';
import type { Upkeep } from './open-upkeep.ts';

export type Operation = ReturnType<typeof openOperation>;

/** Opens the views of operators, and reports whether the server is ready. */
export function openOperation(planes: Planes, upkeep: Upkeep, stack: AsyncDisposableStack) {
  const { config, member, cluster, kernelsInUse, openRequests, storage, streams, phase } = planes;
  const { directory, host } = planes.prerequisites;
  const control = openNodesControl(planes);
  const nodesWatch = stack.use(
    new NodesWatch(config.kernelNodes === 'none' ? undefined : () => control.list()),
  );
  const warnings = () => [
    ...storage.warnings(),
    ...upkeep.warnings(),
    ...clusterWarnings(cluster),
    ...nodesWatch.warnings(),
  ];
  const readiness = () => {
    host.attend();
    return readinessOf({ isLeaving: phase.isLeaving, host, warnings: warnings() });
  };
  const operators = openOperators(
    planes,
    {
      host,
      storePath: directory.storePath,
      kernels: () => kernelsInUse.processes(),
      askNodes: askNodes(planes),
      primaryLog: async () => (await member?.channel.ask('log')) ?? [],
      stream: streams.serverStream,
      load: () => openRequests.load(),
      warnings,
      condition: storage.condition,
      jobs: planes.jobs.condition,
      hooks: planes.hooks.condition,
      isReady: () => readiness().ready,
      nodes: () => (cluster.owns(SYSTEM) ? nodesWatch.latest : { ...nodesWatch.latest, enabled: false }),
    },
    stack,
  );
  return { ...operators, readiness, control };
}

/** Returns the control of the kernel nodes, which are connected to this process or to its primary. */
function openNodesControl({ member, prerequisites }: Ground) {
  return member === undefined ? controlOfNodes(prerequisites.remote) : controlByPrimary(member.channel);
}

/** Returns the question about the use of kernels on nodes; undefined when there are no nodes. */
function askNodes({ config, member, prerequisites }: Ground) {
  if (config.kernelNodes === 'none') return undefined;
  if (member === undefined) return async () => (await prerequisites.remote?.nodes?.use()) ?? new Map();
  return async () => new Map(await member.channel.ask('use-of-nodes'));
}
