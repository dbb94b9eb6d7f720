/** The parts that all planes share: the store, the callers, the actors and their streams, the kernel host. */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { RootLog } from '#src/base/log/log.ts';
import { OpenRequests } from '#src/http/edge/open-requests.ts';
import { type IdentityPlane, openIdentity } from '#src/people/auth/open-identity.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { ALONE, type Cluster } from '#src/runtime/homes/cluster.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { Removals } from '#storage/removals.ts';
import type { AppOptions } from './app-interface.ts';
import type { ClusterMember } from './join-cluster.ts';
import { openStorage, type Storage } from './open-storage.ts';
import { openStreams, type Streams } from './open-streams.ts';
import { openTracer } from './open-tracer.ts';
import { ServerPermits } from './permits.ts';
import type { Prerequisites } from './prerequisites.ts';

export interface Ground extends PlaneContext {
  readonly log: RootLog;
  readonly prerequisites: Prerequisites;
  /** Undefined in a server of one process. */
  readonly member: ClusterMember | undefined;
  readonly storage: Storage;
  readonly identity: IdentityPlane;
  readonly openRequests: OpenRequests;
  readonly streams: Streams;
  readonly permits: ServerPermits;
  readonly phase: ServingPhase;
  /** Returns the port on which this server listens, once it does. */
  readonly ownPorts: () => readonly number[];
}

/** The phase of the server's life, for parts that are opened before it listens. */
export interface ServingPhase {
  port: number | undefined;
  /** Another worker takes the place of this one. */
  isRetiring: boolean;
  /** Load balancers should send no new requests; requests that they still send are answered. */
  isLeaving: boolean;
  isDraining: boolean;
}

/** Opens the shared parts; `stack` closes them. */
export async function openGround(options: AppOptions, stack: AsyncDisposableStack): Promise<Ground> {
  const { config, log, prerequisites, onFatal, member } = options;
  const cluster: Cluster = member?.peers ?? ALONE;
  const { directory, host, metrics } = prerequisites;
  const owns = cluster.owns.bind(cluster);
  const phase: ServingPhase = { port: undefined, isRetiring: false, isLeaving: false, isDraining: false };
  stack.use(directory);
  const storage = await openStorage({ config, directory, log, cluster, onFatal }, stack);
  const { store } = storage;
  const identity = await openIdentity({ config, store, cluster, log }, directory.root);
  const openRequests = new OpenRequests(log);
  stack.use(
    identity.onRevocation((isRevoked) => {
      openRequests.endStreams((caller, action) => isRevoked(caller, action));
      openRequests.endPending((caller, action) => identity.authenticator.renew(caller, action));
    }),
  );
  const tracer = await openTracer(options, stack);
  const runtime = new ActorRuntime(store, log, metrics, {
    own: cluster.incarnation,
    livesElsewhere: (owner) => cluster.livesElsewhere(owner),
    owns,
  });
  const streams = openStreams({ config, cluster, runtime, store, metrics }, stack);
  if (prerequisites.remote !== undefined) stack.use(prerequisites.remote); // closes after the kernels have ended
  stack.use(host);
  // After the server has closed, so that nothing commands an actor any more, and before the kernels that actors write to.
  stack.defer(() => runtime.stopAll());
  const removals = stack.use(
    new Removals(store, (error) => log.error({ err: error }, 'what was deleted could not be removed'), owns),
  );
  const permits = new ServerPermits(store, cluster);
  identity.limits.onChange((workspaceId) => permits.settle(workspaceId));
  return {
    config,
    log,
    metrics,
    tracer,
    cluster,
    store,
    runtime,
    removals,
    prerequisites,
    member,
    storage,
    identity,
    openRequests,
    streams,
    permits,
    phase,
    ownPorts: () => (phase.port === undefined ? [] : [phase.port]),
  };
}
