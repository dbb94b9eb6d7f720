/** The parts of a process that every plane uses. They are opened before any plane, and outlive all planes. */

import type { Config } from '#src/base/config/config.ts';
import type { Log } from '#src/base/log/log.ts';
import type { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import type { Tracer } from '#src/base/tracing/tracer.ts';
import type { Removals } from '#storage/removals.ts';
import type { Store } from '#storage/store.ts';
import type { ActorRuntime } from '../actors/runtime.ts';
import type { Cluster } from '../homes/cluster.ts';
import type { RunDeletion } from '../runs/run-deletion.ts';
import type { RunRepository } from '../runs/run-repository.ts';
import type { Environments } from './environments.ts';

/** The context of a plane such as notebooks or agents, in place of one option for each part. */
export interface PlaneContext {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: ServerMetrics;
  /** Undefined when the settings name no receiver of traces. */
  readonly tracer: Tracer | undefined;
  readonly cluster: Cluster;
  readonly store: Store;
  readonly runtime: ActorRuntime;
  readonly removals: Removals;
}

/** The context of notebooks and of agents. The sessions of both are in environments and carry out runs. */
export interface RunPlaneContext extends PlaneContext {
  readonly runs: RunRepository;
  readonly runDeletion: RunDeletion;
  readonly environments: Environments;
}
