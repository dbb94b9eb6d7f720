import type { ClusterChannel } from '#src/cluster/worker/channel.ts';
import type { NodeState } from '#src/confined/nodes/kernel-nodes.ts';
import type { Node } from '#src/contract/wire/nodes.ts';
import type { NodesControl } from '#src/http/routes/nodes.ts';
import type { RemoteKernels } from './open-nodes.ts';

/** Returns the control of the nodes that are connected to this process; undefined: the settings want none. */
export function controlOfNodes(remote: Pick<RemoteKernels, 'nodes' | 'engine'> | undefined): NodesControl {
  const { nodes, engine } = remote ?? {};
  const find = (name: string) => nodes?.list().find((node) => node.name === name);
  return {
    async list() {
      const items = nodes?.list().map(toWire) ?? [];
      return {
        enabled: nodes !== undefined,
        waiting: nodes?.waiting ?? 0,
        engine: engine === undefined ? null : { kind: 'ray', problem: engine.problem },
        items,
      };
    },
    invite: async () => nodes?.invite(),
    async drain(name, draining) {
      if (nodes?.drain(name, draining) !== true) return undefined;
      const node = find(name);
      return node && toWire(node);
    },
    remove: async (name) => nodes?.remove(name) ?? false,
  };
}

/** Returns the control of nodes that are connected to the process above the workers. */
export function controlByPrimary(channel: Pick<ClusterChannel, 'ask'>): NodesControl {
  return {
    list: () => channel.ask('list-nodes'),
    invite: () => channel.ask('invite-node'),
    drain: (name, draining) => channel.ask('drain-node', { name, draining }),
    remove: (name) => channel.ask('remove-node', { name }),
  };
}

function toWire({ offer, condition, isDraining, ...node }: NodeState): Node {
  return {
    name: node.name,
    state: node.state,
    draining: isDraining,
    problem: node.problem,
    kernels: node.kernels,
    capacity: offer?.capacity ?? null,
    memoryBytes: offer?.memoryBytes ?? null,
    freeMemoryBytes: condition?.freeMemoryBytes ?? null,
    cores: offer?.cores ?? null,
    load: condition?.load ?? null,
    confinement: offer?.confinement ?? null,
    release: offer?.release ?? null,
    address: node.address,
    enrolledAt: node.enrolledAt,
    joinedAt: node.joinedAt,
  };
}
