/** One of the processes that serve, below a primary. */

import { VERSION } from '#src/base/install/version.ts';
import { dieWithParent } from '#src/base/os/prctl.ts';
import { Peers } from '#src/cluster/peers/peers.ts';
import { PrimaryLink, type ProcessChannel } from '#src/cluster/worker/primary-link.ts';
import { RelayedHosts } from '#src/cluster/worker/relayed-zygote.ts';
import type { LocalModelAddress } from '#src/confined/processes/children/local-model.ts';
import { openPrerequisites } from '../app/prerequisites.ts';
import { compileEarly } from './compile-early.ts';
import { drain } from './drain.ts';
import { protectMemory } from './protect.ts';
import { logFatal, type ServeOptions } from './serve-alone.ts';

/**
 * Signals that a terminal or a service manager sends to all processes of a server. The primary decides their effect.
 */
const OF_THE_PRIMARY: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** The signal with which the primary drains a replaced worker. Other signals end the whole server. */
const OF_REPLACEMENT: NodeJS.Signals = 'SIGHUP';

/** Resolves when the worker serves. Rejects when it cannot. */
export async function serveAsWorker(options: ServeOptions, channel: ProcessChannel): Promise<void> {
  const { config, end, fail } = options;
  for (const signal of OF_THE_PRIMARY) process.on(signal, () => {});
  const unguarded = await dieWithParent();
  const { createApp } = await import('../app.ts'); // loaded while Python starts, so that it costs no time
  const { warmedUp } = await import('./warm-up.ts');
  const link = await PrimaryLink.open(channel);
  const log = options.log.ofWorker(link.worker);
  if (unguarded !== undefined)
    log.warn({ because: unguarded }, 'a worker that hangs outlives a server that is killed');
  if (link.version !== VERSION)
    throw new Error(
      `The server is of release ${link.version} and its new worker of ${VERSION}: restart the server.`,
    );
  const hosts = new RelayedHosts(link);
  const prerequisites = await openPrerequisites(config, log, {
    socketFolder: link.socketFolder,
    starterOf: (name) => hosts.starterOf(name),
    startModel: sharedModel(link),
  });
  await protectMemory(log);
  const peers = new Peers(link, (topic, error) =>
    log.error({ err: error, topic }, 'the question of another worker could not be answered'),
  );
  const app = await createApp({
    config,
    log,
    prerequisites,
    member: { channel: link, peers },
    onFatal: (error) => {
      logFatal(log, 'worker', error);
      end(1);
    },
  });
  const warmed = warmedUp(app, { config, log, prerequisites, createApp });
  link.onDrain((signal) => {
    const isReplaced = signal === OF_REPLACEMENT;
    if (isReplaced) app.retire();
    const leavingMs = isReplaced ? 0 : config.drainS * 1000;
    drain({ app: warmed, log, subject: 'worker', leavingMs }, signal).then(
      (isStored) => end(isStored ? 0 : 1),
      (error: unknown) => fail(`Stopping failed: ${error instanceof Error ? error.message : String(error)}`),
    );
  });
  link.send({ op: 'listening', url: app.url });
  compileEarly();
}

/** Returns a function that starts the one local model of the server, which is a child of the primary's kernel host. */
function sharedModel(link: Pick<PrimaryLink, 'ask'>): () => Promise<LocalModelAddress> {
  return async () => {
    const found = await link.ask('model');
    if ('problem' in found) throw new Error(found.problem);
    return found;
  };
}
