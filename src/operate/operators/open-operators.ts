/** Opens the operators' views of the running server: its state, its kernels, its metrics and its last lines of log. */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { RootLog } from '#src/base/log/log.ts';
import type { ServerObservation } from '#src/http/routes/server.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { observeCluster } from './cluster-observation.ts';
import { KernelSampler, type KernelWithProcess, type UseOnNodes } from './kernel-usage.ts';
import { kernelsOfAll } from './kernels-of-all.ts';
import { ServerEvents, type ServerStream } from './server-events.ts';
import { type ObservedServer, observeServer } from './server-gauges.ts';
import { loadOf, ServerStateReader } from './server-state.ts';

/** The context of a plane, with the lines of log that this process has written last. */
interface OperatorsContext extends PlaneContext {
  readonly log: RootLog;
}

export interface OperationsOptions extends ObservedServer {
  readonly kernels: () => Iterable<KernelWithProcess>;
  /** Resolves with the use of kernels on nodes; absent: there are no nodes. */
  readonly askNodes: (() => Promise<UseOnNodes>) | undefined;
  /** Resolves with the last lines of the process above the workers; with none in a server of one process. */
  readonly primaryLog: () => Promise<readonly string[]>;
  /** The event stream of the load. */
  readonly stream: ServerStream;
}

export interface Operations {
  readonly observation: ServerObservation;
  /** Makes all subscribers of the load connect again. */
  readonly resyncAll: () => void;
  /** Adds the gauges, and begins to time commits. */
  readonly begin: () => void;
}

/** Opens the views. `stack` stops the samplers. */
export function openOperators(
  context: OperatorsContext,
  options: OperationsOptions,
  stack: AsyncDisposableStack,
): Operations {
  const { log, metrics } = context;
  const kernels = new KernelSampler(options.kernels, options.askNodes);
  const state = stack.use(new ServerStateReader(context, options, kernels));
  // A separate reader: each reader gets the activity since its own previous reading.
  const watched = stack.use(new ServerStateReader(context, options, kernels));
  const cluster = observeCluster(
    {
      metrics: async () => {
        await kernels.sampleOrLatest();
        return metrics.registry.text();
      },
      state: () => state.read(),
      watched: () => watched.read(),
      log: () => log.recent(),
    },
    context.cluster,
    options.primaryLog,
  );
  const events = stack.use(
    new ServerEvents({
      stream: options.stream,
      facts: () => watched.facts(),
      load: async () => loadOf(await cluster.watched()),
      log,
    }),
  );
  return {
    observation: {
      ...cluster,
      follow: (sink) => events.follow(sink),
      kernels: kernelsOfAll(kernels, options.host.limits.memoryBytes, context.cluster),
    },
    resyncAll: () => events.resyncAll(),
    begin: () => {
      stack.use(observeServer(context, options, kernels));
    },
  };
}
