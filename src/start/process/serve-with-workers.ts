/**
 * The server as a primary with workers. This process has the resources that exist only once: the
 * claim on the data directory, the kernel hosts, the signals. It opens the store only before the
 * workers do, and serves no request.
 */

import { onUnawaitedFault, UNAWAITED_FAULT, unawaited } from '#src/base/async/unawaited.ts';
import type { Config } from '#src/base/config/config.ts';
import type { Log } from '#src/base/log/log.ts';
import { listenFailure } from '#src/base/net/listen-failure.ts';
import { type BoundSocket, bindListener } from '#src/base/os/listening-socket.ts';
import { notifyServiceManager } from '#src/base/os/service-notice.ts';
import type { AskedQuestion, Details, PrimaryAnswers, Question } from '#src/cluster/messages.ts';
import { Primary } from '#src/cluster/primary/primary.ts';
import { SharedHosts } from '#src/cluster/primary/shared-hosts.ts';
import { SocketDirectory } from '#src/confined/processes/host/socket-directory.ts';
import type { DataDirectory } from '#storage/disk/data-directory.ts';
import { loadWakeWriters } from '#storage/disk/wake-writers.ts';
import { controlOfNodes } from '../app/control-of-nodes.ts';
import { localModelOf } from '../app/open-local-model.ts';
import { awaitRequiredConfinement, claimDirectory, hostMaker, startHost } from '../app/prerequisites.ts';
import { openProxySocket } from '../app/proxy-socket.ts';
import { announce, sayWhereKernelsRun } from './announce.ts';
import { holdLocalhost, protectMemory, warnOfLauncher, warnOfSharedAddresses } from './protect.ts';
import { onSignals, type ServeOptions } from './serve-alone.ts';

/**
 * `program` is the file that workers run. Resolves when everything is ready. The process then watches its workers until a
 * signal drains them. Rejects when the server cannot start.
 */
export async function serveWithWorkers(options: ServeOptions, program: string): Promise<void> {
  const { config, log, secrets, fail } = options;
  const startedAt = performance.now();
  onUnawaitedFault((err, place) => log.error({ err, place }, UNAWAITED_FAULT));
  const directory = await claimDirectory(config);
  const claim = requireInheritable(directory);
  const bound = await bindSocket(config);
  const proxySocket = await openProxySocket(config);
  const writersWake = loadWakeWriters(directory.storePath);
  const sockets = new SocketDirectory(directory.runPath);
  const opened = await openNodesOf(config, directory, log);
  const control = controlOfNodes(opened);
  const hosts = new SharedHosts({
    makeHost: hostMaker({
      config,
      log,
      directory,
      runDir: sockets.path,
      keepsChecks: config.kernelNodes === 'none' && !config.readOnly,
    }),
    preload: config.preload,
    tell: (worker, report) => primary.send(worker, report),
    starterOf: opened?.starterOf,
  });
  const kernelsReady = startHost(hosts.usual, log);
  kernelsReady.catch(() => {}); // otherwise a failure before anything awaits it would be unhandled
  const primary: Primary = new Primary({
    size: config.workers,
    program,
    claim,
    sockets: [bound.descriptor, ...(proxySocket === undefined ? [] : [proxySocket.descriptor])],
    socketFolder: sockets.path,
    log,
    took: (worker, message) => {
      if (message.op === 'question')
        unawaited(reply(worker, message), 'serve-with-workers: the answer to a worker');
      else hosts.take(worker, message);
    },
    ended: (worker) => {
      unawaited(
        writersWake.then((wake) => wake()),
        'serve-with-workers: the wake of writers',
      );
      hosts.forget(worker);
    },
    onHopeless: (problem) => {
      log.flush();
      fail(problem);
    },
  });
  const model = localModelOf(config, log, hosts.usual);
  const answers: { readonly [Asked in Question]: Answer<Asked> } = {
    model: async () => {
      if (model === undefined) return { problem: 'There is no local model.' };
      return model.start().catch((error: Error) => ({ problem: error.message }));
    },
    log: async () => log.recent(),
    'list-nodes': () => control.list(),
    'invite-node': () => control.invite(),
    'drain-node': ({ name, draining }) => control.drain(name, draining),
    'remove-node': ({ name }) => control.remove(name),
    'use-of-nodes': async () => [...((await opened?.nodes.use()) ?? [])],
  };
  const reply = async (worker: number, { request, question, about }: AskedQuestion) =>
    primary.send(worker, { op: 'answer', request, answer: await answers[question](about as never) });
  await protectMemory(log);
  warnOfLauncher(log, secrets);
  warnOfSharedAddresses(log, config);
  await holdLocalhost(log, config.host, bound.port);
  const { prepareStore } = await import('./first-start.ts'); // loaded while Python and the workers start, so that it costs no time
  await awaitRequiredConfinement(config, kernelsReady);
  const bootstrapped = await prepareStore({ config, directory, log });
  const url = await primary.open(bound.port);
  onSignals(['SIGTERM', 'SIGINT'], options, async (signal) => {
    const isStored = await primary.drain(signal);
    proxySocket?.[Symbol.dispose]();
    model?.[Symbol.dispose]();
    await hosts[Symbol.asyncDispose]();
    await opened?.[Symbol.asyncDispose]();
    sockets[Symbol.dispose]();
    directory[Symbol.dispose]();
    if (isStored) log.info({}, 'the server has stopped');
    else
      log.error(
        {},
        'the server has stopped, and changes that the disk did not take are lost; none of them was acknowledged',
      );
    await log.written();
    return isStored;
  });
  process.on('SIGHUP', () =>
    unawaited(primary.replaceAll(), 'serve-with-workers: the replacement of workers'),
  );
  announce({ url, config, bootstrapped });
  const { confinement } = await kernelsReady;
  sayWhereKernelsRun(config, confinement);
  const ms = Math.round(performance.now() - startedAt);
  log.info({ url, workers: config.workers, ms }, 'ready');
  unawaited(
    notifyServiceManager({ READY: 1, STATUS: `Serving on ${url}.` }),
    'serve-with-workers: the notice to the service manager',
  );
}

/** Listens for kernel nodes, if the settings want them. The code for that is loaded only then. */
async function openNodesOf(config: Config, directory: DataDirectory, log: Log) {
  if (config.kernelNodes === 'none') return undefined;
  const { openNodes } = await import('../app/open-nodes.ts');
  return openNodes(config, directory, log, 'without sessions');
}

type Answer<Asked extends Question> = (...details: Details<Asked>) => Promise<PrimaryAnswers[Asked]>;

function requireInheritable({ claimDescriptor }: DataDirectory): number {
  if (claimDescriptor !== undefined) return claimDescriptor;
  throw new Error(
    'This machine has no flock(2), without which workers cannot be kept: set TROUPE_WORKERS to 1.',
  );
}

/** Binds the socket that workers inherit. Rejects with one line when the port cannot be had. */
async function bindSocket({ host, port }: Config): Promise<BoundSocket> {
  try {
    return await bindListener(host, port);
  } catch (cause) {
    const { code } = cause as { readonly code?: string };
    throw new Error(listenFailure(code, { host, port }), { cause });
  }
}
