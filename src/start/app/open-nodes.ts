/**
 * Kernels on other machines: listening for nodes, for the connections of their kernels, and the engine that keeps nodes running. Loaded
 * only by servers that have nodes.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from '#src/base/config/config.ts';
import type { Log } from '#src/base/log/log.ts';
import { EnrolledNodes } from '#src/confined/nodes/enrolled-nodes.ts';
import { KernelArrivals, withArrivals } from '#src/confined/nodes/kernel-arrivals.ts';
import { KernelNodes } from '#src/confined/nodes/kernel-nodes.ts';
import { openNodeServer } from '#src/confined/nodes/node-server.ts';
import { withNodes } from '#src/confined/nodes/nodes-zygote.ts';
import { RayNodes } from '#src/confined/nodes/ray.ts';
import { RayJobs } from '#src/confined/nodes/ray-jobs.ts';
import type { StarterOf } from '#src/confined/processes/host/zygote-process.ts';
import { ShapeError } from '#src/confined/processes/json-shape.ts';
import { openSealedAuthority } from '#src/operate/maintenance/nodes-sealing.ts';
import type { DataDirectory } from '#storage/disk/data-directory.ts';
import { writePrivateFile } from '#storage/disk/private-file.ts';

/** The name of a file in the folder of the workspaces that nodes read. */
const NODE_CHECK = '.troupe-nodes';

/** The parts of this process by which kernels run on nodes. */
export interface RemoteKernels extends AsyncDisposable {
  readonly starterOf: StarterOf;
  /** The nodes; undefined when another process has them. */
  readonly nodes?: KernelNodes;
  /** Keeps nodes running on a cluster; undefined when nodes join by themselves. */
  readonly engine?: RayNodes | undefined;
}

/**
 * Listens for kernel nodes. `with sessions`: the sessions of their kernels are in this process too. Rejects with one line when
 * that is impossible, or when a setting is missing.
 */
export async function openNodes(
  config: Config,
  directory: DataDirectory,
  log: Log,
  role: 'with sessions' | 'without sessions',
): Promise<RemoteKernels & { readonly nodes: KernelNodes }> {
  const ray = raySettings(config); // a missing setting is named before anything listens
  const arrivals = role === 'with sessions' ? new KernelArrivals() : undefined;
  const enrolled = await openEnrolled(directory, config.keyringFile);
  const nodes = new KernelNodes({
    host: config.nodesHost,
    port: config.nodesPort,
    enrolled,
    isSecret: await openSecret(config, enrolled.digest),
    check: writeCheck(directory),
    placement: config.nodesPlacement,
    ...(arrivals && { arrivals }),
    log,
  });
  await nodes.listen();
  const engine =
    ray && new RayNodes({ ...ray, jobs: new RayJobs(ray), nodes, serverId: nodes.serverId, log });
  return {
    nodes,
    engine,
    starterOf(name) {
      const start = withNodes(nodes, name === 'plain');
      return arrivals === undefined ? start : withArrivals(arrivals, start);
    },
    async [Symbol.asyncDispose]() {
      await engine?.[Symbol.asyncDispose]();
      await nodes[Symbol.asyncDispose]();
    },
  };
}

/** Listens for the kernels of a worker's sessions, whose orders go to the primary with `starterOf`. */
export async function openArrivals(
  { nodesHost: host, nodesPort: first, workers, keyringFile }: Config,
  directory: DataDirectory,
  log: Log,
  starterOf: StarterOf,
): Promise<RemoteKernels> {
  const { authority } = await openEnrolled(directory, keyringFile);
  const arrivals = new KernelArrivals();
  const server = await openNodeServer({
    host,
    // During a replacement there are more workers than usual.
    ports: first === 0 ? [0] : Array.from({ length: 2 * workers }, (_, index) => first + 1 + index),
    authority,
    log,
    take(socket, message, rest) {
      if (message.op !== 'kernel') throw new ShapeError('an unknown purpose');
      return arrivals.take(socket, message, rest);
    },
  });
  arrivals.port = server.port;
  return {
    starterOf: (name) => withArrivals(arrivals, starterOf(name)),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
    },
  };
}

/** Opens the files of the nodes. The keyring opens sealed files of a restored backup. */
function openEnrolled(directory: DataDirectory, keyringFile: string): Promise<EnrolledNodes> {
  return EnrolledNodes.open(join(directory.root, 'nodes'), writePrivateFile, (sealed, file) =>
    openSealedAuthority(keyringFile, sealed, file),
  );
}

/** Returns the settings of Ray; undefined when no cluster runs nodes. Throws one line when a setting is missing. */
function raySettings(config: Config) {
  const {
    kernelNodes,
    nodesAddress: address,
    rayTokenFile: tokenFile,
    nodesMin: min,
    nodesMax: max,
  } = config;
  if (!kernelNodes.startsWith('ray:')) return undefined;
  if (address === undefined)
    throw new Error('With Ray, set TROUPE_NODES_ADDRESS: the address at which nodes reach this server.');
  if (tokenFile === undefined)
    throw new Error(
      'With Ray, set TROUPE_RAY_TOKEN_FILE: without a token (RAY_AUTH_MODE=token), whoever reaches Ray runs programs on it.',
    );
  if (min > max) throw new Error('TROUPE_NODES_MIN must not be greater than TROUPE_NODES_MAX.');
  return { url: kernelNodes.slice('ray:'.length), tokenFile, address, min, max };
}

/** Opens the secret that admits machines without an invitation, if the settings want one. */
async function openSecret({ nodesSecretFile: file }: Config, authority: Buffer) {
  if (file === undefined) return undefined;
  const { openNodeSecret } = await import('#src/confined/nodes/node-secret.ts');
  return openNodeSecret({ file, authority, write: writePrivateFile });
}

/** Writes the file by which a node shows that it has mounted the folder of the workspaces. */
function writeCheck(directory: DataDirectory): { readonly path: string; readonly text: string } {
  const check = { path: join(directory.root, 'workspaces', NODE_CHECK), text: randomUUID() };
  writePrivateFile(check.path, check.text);
  return check;
}
