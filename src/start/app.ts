/** The composition root: it opens the planes one after the other, connects them, and serves them. It decides nothing. */

import { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { App, AppOptions } from './app/app-interface.ts';
import { endWork } from './app/end-work.ts';
import { openGround } from './app/ground.ts';
import { openOperation } from './app/open-operation.ts';
import { openPlanes } from './app/open-planes.ts';
import { openServer } from './app/open-server.ts';
import { openUpkeep } from './app/open-upkeep.ts';

/**
 * Opens everything and listens. Disposing the app drains it: running runs fail with `server_stopped`, sessions stay open
 * in the store.
 */
export async function createApp(options: AppOptions): Promise<App> {
  const stack = new AsyncDisposableStack();
  try {
    return await open(options, stack);
  } catch (error) {
    // An error of the closing must not hide the error that made the server close.
    await Promise.allSettled([stack[Symbol.asyncDispose]()]);
    await Promise.allSettled([options.prerequisites[Symbol.asyncDispose]()]);
    throw error;
  }
}

/**
 * Opens everything in this order. `stack` closes it in the opposite order, so a part may use only parts that were opened before it.
 * It reaches the late planes (`late-planes.ts`) once all planes are open.
 */
async function open(options: AppOptions, stack: AsyncDisposableStack): Promise<App> {
  const planes = await openPlanes(await openGround(options, stack), stack);
  const { identity, openRequests, phase, runs, store, streams } = planes;
  const upkeep = openUpkeep(planes, stack);
  const operation = openOperation(planes, upkeep, stack);
  const server = await openServer({ planes, operation, upkeep }, options.socketPath, stack);
  phase.port = server.port;
  operation.begin();
  return {
    server,
    url: `http://${server.host.includes(':') ? `[${server.host}]` : server.host}:${server.port}`,
    bootstrapped: identity.bootstrapped,
    kernelsReady: options.prerequisites.kernelsReady,
    requestCount: () => openRequests.count,
    load: () => ({
      sessions: planes.kernelsInUse.workspaces().length,
      runs: runs.actors.residents().length,
      streams: openRequests.load().streams,
    }),
    retire() {
      phase.isRetiring = true;
    },
    stored: () => store.durable(),
    async [Symbol.asyncDispose]() {
      const { drainS } = options.config;
      phase.isLeaving = !phase.isRetiring;
      if (phase.isLeaving && drainS > 0) await new Promise((resolve) => setTimeout(resolve, drainS * 1000));
      phase.isDraining = true;
      server.stopListening();
      await endWork({
        planes: [planes.agents.plane, planes.notebooks.plane],
        operatorStreams: [streams.actorEvents, operation],
        store,
        othersSuspended: () => options.member?.channel.suspended(),
      });
      await stack[Symbol.asyncDispose]();
    },
  };
}
