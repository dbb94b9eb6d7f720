import { choice, host, integer, kernelNodes, path, secret } from './kinds.ts';
import { optional, setting } from './setting.ts';

/** Kernels on other machines. In the order of the documentation. */
export const NODE_SETTINGS = {
  kernelNodes: setting({
    env: 'TROUPE_KERNEL_NODES',
    kind: kernelNodes,
    default: 'none',
    description:
      'Where kernels run. `none`: on this machine. `join`: only on machines that `troupe node join` has connected. `ray:` with the address of the Jobs API of a Ray cluster, such as `ray:http://head:8265`: only on machines of the cluster, where the server starts `troupe node join` (docs/nodes.md).',
  }),
  nodesHost: setting({
    env: 'TROUPE_NODES_HOST',
    kind: host,
    default: '0.0.0.0',
    description:
      'Address at which the server listens for kernel nodes, with TLS. Only machines with a certificate of this server are admitted.',
  }),
  nodesPort: setting({
    env: 'TROUPE_NODES_PORT',
    kind: integer(0, 65_535),
    default: '8790',
    description: 'Port for kernel nodes. With 0 the system chooses a free port.',
  }),
  nodesAddress: optional({
    env: 'TROUPE_NODES_ADDRESS',
    kind: host,
    description:
      'Address at which kernel nodes reach this server. Required with Ray, because the server gives this address to the nodes that it starts.',
  }),
  nodesPlacement: setting({
    env: 'TROUPE_NODES_PLACEMENT',
    kind: choice('spread', 'workspace'),
    default: 'spread',
    description:
      'On which node a kernel starts. `spread` means the node with most room in memory and processors. `workspace` means the node that has most kernels of the workspace, as long as that node has room. Notebooks of one workspace that write the same SQLite file on a shared file system need `workspace`, and a node with room for all of them.',
  }),
  nodesSecretFile: optional({
    env: 'TROUPE_NODES_SECRET_FILE',
    kind: path,
    description:
      'File with a secret that admits any number of kernel nodes without an invitation (`troupe node join HOST:PORT --secret-file FILE`). The server makes a missing file.',
  }),
  nodesMin: setting({
    env: 'TROUPE_NODES_MIN',
    kind: integer(0, 500),
    default: '1',
    description:
      'With Ray: fewest machines that run kernels. With 0 the server gives the last machine back after five minutes without a session.',
  }),
  nodesMax: setting({
    env: 'TROUPE_NODES_MAX',
    kind: integer(1, 500),
    default: '10',
    description: 'With Ray: most machines that run kernels.',
  }),
  rayTokenFile: optional({
    env: 'TROUPE_RAY_TOKEN_FILE',
    kind: path,
    description: 'File with the token of the Ray cluster (`RAY_AUTH_MODE=token`). Required with Ray.',
  }),
  nodeInvitation: optional({
    env: 'TROUPE_NODE_INVITATION',
    kind: secret(/^\S{1,512}$/, 'an invitation: HOST:PORT#CODE'),
    description: 'On a kernel node: the invitation for `troupe node join`, if the command has no argument.',
  }),
  nodeDir: setting({
    env: 'TROUPE_NODE_DIR',
    kind: path,
    default: '.troupe-node',
    description: 'On a kernel node: directory for its key, its certificate and its sockets.',
  }),
  nodeSessions: setting({
    env: 'TROUPE_NODE_SESSIONS',
    kind: integer(0, 100_000),
    default: '0',
    description: 'On a kernel node: most kernels at once; 0 means one for each 280 MiB of its memory.',
  }),
  nodeKernelNetwork: setting({
    env: 'TROUPE_NODE_KERNEL_NETWORK',
    kind: choice('none', 'host'),
    default: 'none',
    description:
      'On a kernel node: `none` gives notebook code only a loopback interface, `host` the network of the node, with every machine that the node reaches. Datasources and packages work in both cases.',
  }),
} as const;
