/** Kernel nodes: the machines that run kernels for the server. */
import Type from 'typebox';
import { closed, nullable, oneOf, Timestamp, type Wire } from './shape.ts';

const NodeReleaseSchema = Type.Object(
  {
    version: Type.String({ description: 'The version of Troupe.' }),
    build: Type.String({ description: 'A digest of the programs of Troupe.' }),
    scripts: Type.String({ description: 'A digest of the programs that kernels run.' }),
    marimo: Type.String(),
    python: Type.String(),
  },
  { $id: 'NodeRelease', ...closed },
);

export const NodeSchema = Type.Object(
  {
    name: Type.String(),
    state: oneOf(['joined', 'draining', 'away'], {
      description:
        '`joined`: the node takes kernels. `draining`: the node is connected, but takes no new kernels. `away`: the node is not connected.',
    }),
    draining: Type.Boolean({ description: 'Whether an operator wants no new kernels there.' }),
    problem: nullable(
      Type.String({ description: 'Why the node takes no kernels, or why the server last refused the node.' }),
    ),
    kernels: Type.Integer(),
    capacity: nullable(
      Type.Integer({ description: 'The most kernels at once. Null while the node is away.' }),
    ),
    memoryBytes: nullable(
      Type.Integer({ description: 'The memory of the machine. Null while the node is away.' }),
    ),
    freeMemoryBytes: nullable(Type.Integer({ description: 'Null while the node is away.' })),
    cores: nullable(Type.Integer({ description: 'Null while the node is away.' })),
    load: nullable(
      Type.Number({ description: 'The load average of a minute. Null while the node is away.' }),
    ),
    confinement: nullable(
      Type.String({
        description: 'How kernels are confined on the node, in one line. Null while the node is away.',
      }),
    ),
    release: nullable(NodeReleaseSchema),
    address: nullable(Type.String({ description: 'The address from which the node has joined.' })),
    enrolledAt: Timestamp,
    joinedAt: nullable(Timestamp),
  },
  { $id: 'Node', ...closed },
);
export type Node = Wire<typeof NodeSchema>;

const NodeEngineSchema = Type.Object(
  {
    kind: oneOf(['ray']),
    problem: nullable(
      Type.String({ description: 'Why the cluster runs fewer nodes than the server wants.' }),
    ),
  },
  {
    $id: 'NodeEngine',
    ...closed,
    description: 'The cluster that runs nodes for the server. Null when nodes join by themselves.',
  },
);

export const NodeListSchema = Type.Object(
  {
    enabled: Type.Boolean({ description: 'Whether kernels run on nodes (`TROUPE_KERNEL_NODES`).' }),
    waiting: Type.Integer({ description: 'Kernels that wait for a node with room.' }),
    engine: nullable(NodeEngineSchema),
    items: Type.Array(NodeSchema),
  },
  { $id: 'NodeList', ...closed },
);
export type NodeList = Wire<typeof NodeListSchema>;

export const NodeChangeSchema = Type.Object(
  {
    draining: Type.Boolean({
      description: 'With true, no new kernels start on the node; its present kernels stay.',
    }),
  },
  { $id: 'NodeChange', ...closed, examples: [{ draining: true }] },
);

export const NodeInvitationSchema = Type.Object(
  {
    code: Type.String({
      description:
        'Works once, in `troupe node join HOST:PORT#CODE` on the new node. HOST is an address of this server.',
    }),
    port: Type.Integer({ description: 'The port at which nodes connect.' }),
    expiresAt: Timestamp,
  },
  { $id: 'NodeInvitation', ...closed },
);
export type NodeInvitation = Wire<typeof NodeInvitationSchema>;
