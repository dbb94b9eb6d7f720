/**
 * The slowest parts of a start, which begin before the rest of the server is loaded: the claim on the data directory and the Python
 * process from which every kernel is forked. Every module that this file imports delays that process.
 */

import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { onUnawaitedFault, UNAWAITED_FAULT } from '#src/base/async/unawaited.ts';
import type { Config } from '#src/base/config/config.ts';
import { CONFIG_FILE } from '#src/base/config/file.ts';
import type { Log } from '#src/base/log/log.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import type { LocalModelAddress } from '#src/confined/processes/children/local-model.ts';
import { forgetChecks, keepChecks } from '#src/confined/processes/host/kept-checks.ts';
import { KernelHost } from '#src/confined/processes/host/kernel-host.ts';
import type { HostParts } from '#src/confined/processes/host/kernel-host-options.ts';
import { PlainHost } from '#src/confined/processes/host/plain-host.ts';
import { ProcessorShares } from '#src/confined/processes/host/processor-shares.ts';
import type { HostName, StarterOf, StartZygote } from '#src/confined/processes/host/zygote-process.ts';
import { limitsOf } from '#src/confined/processes/limits.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import {
  DATA_FILE,
  isUnfinished,
  RESTORING_FILE,
  requireExpectedStore,
  requireNoUnfinishedRestore,
  requireStoreIn,
} from '#storage/disk/store-folder.ts';
import type { RemoteKernels } from './open-nodes.ts';
import type { ProcessContext } from './process-context.ts';

export interface Prerequisites extends AsyncDisposable {
  /** The metrics of the whole server. */
  readonly metrics: ServerMetrics;
  readonly directory: DataDirectory;
  readonly host: KernelHost;
  /** Starts a host that has only marimo loaded, once. */
  readonly plainHost: PlainHost;
  /** Resolves when a kernel has started; rejects when this Python cannot run them. */
  readonly kernelsReady: Promise<{ readonly confinement: string }>;
  /** The machines on which kernels run; undefined when they run on this one. To be disposed of after the hosts. */
  readonly remote?: RemoteKernels | undefined;
  /** Starts the local model in another process, if another one runs it. */
  readonly startModel?: (() => Promise<LocalModelAddress>) | undefined;
}

/** The resources of the primary that a worker uses. */
export interface SharedPrerequisites {
  /** The folder of sockets. */
  readonly socketFolder: string;
  /** Returns the function that lets this worker start kernels in the primary's kernel host. */
  readonly starterOf: StarterOf;
  /** Starts the primary's local model. */
  readonly startModel: () => Promise<LocalModelAddress>;
}

/**
 * Rejects with a one-line error when another server has claimed the data directory, or when the directory lacks the store that it
 * must have. Disposing is idempotent.
 */
export async function openPrerequisites(
  config: Config,
  log: Log,
  shared?: SharedPrerequisites,
  startZygote?: StartZygote,
): Promise<Prerequisites> {
  const directory =
    shared === undefined ? await claimDirectory(config) : DataDirectory.inherited(config.dataDir);
  const metrics = new ServerMetrics();
  const faults = onUnawaitedFault((err, place) => {
    metrics.unawaitedFaults.of(place).add();
    log.error({ err, place }, UNAWAITED_FAULT);
  });
  const runDir = shared?.socketFolder ?? directory.runPath;
  const keepsChecks = shared === undefined && config.kernelNodes === 'none' && !config.readOnly;
  const makeHost = hostMaker({ config, log, directory, runDir, metrics, keepsChecks });
  const remote =
    config.kernelNodes === 'none' ? undefined : await openRemoteKernels(config, directory, log, shared);
  const starterOf = remote?.starterOf ?? shared?.starterOf ?? (startZygote && (() => startZygote));
  const partsOf = (name: HostName): HostParts => (starterOf ? { startZygote: starterOf(name) } : {});
  const host = makeHost(config.preload, { ...partsOf('usual'), proves: true });
  const plainHost = new PlainHost(() => makeHost(false, partsOf('plain')));
  const kernelsReady = startHost(host, log);
  kernelsReady.catch(() => {}); // otherwise a failure before anything awaits it would be unhandled
  return {
    metrics,
    directory,
    host,
    plainHost,
    kernelsReady,
    startModel: shared?.startModel,
    remote,
    async [Symbol.asyncDispose]() {
      await plainHost[Symbol.asyncDispose]();
      await host[Symbol.asyncDispose]();
      await remote?.[Symbol.asyncDispose]();
      directory[Symbol.dispose]();
      faults[Symbol.dispose]();
    },
  };
}

/** Kernels of this process's sessions that run on nodes. This module is loaded only where there are nodes. */
async function openRemoteKernels(
  config: Config,
  directory: DataDirectory,
  log: Log,
  shared: SharedPrerequisites | undefined,
): Promise<RemoteKernels> {
  const { openArrivals, openNodes } = await import('./open-nodes.ts');
  if (shared === undefined) return openNodes(config, directory, log, 'with sessions');
  return openArrivals(config, directory, log, shared.starterOf);
}

/**
 * Where full confinement is required, resolves when a kernel has started, and rejects when this machine cannot confine it;
 * otherwise resolves at once. So a server that may not run here writes no store, makes no token and does not listen.
 */
export async function awaitRequiredConfinement(
  { kernelConfinement }: Pick<Config, 'kernelConfinement'>,
  kernelsReady: Prerequisites['kernelsReady'],
): Promise<void> {
  if (kernelConfinement === 'require') await kernelsReady;
}

/** Claims the data directory for this process. Rejects as `openPrerequisites` does. */
export function claimDirectory(config: Config): Promise<DataDirectory> {
  if (config.readOnly)
    return DataDirectory.claimToRead(config.dataDir, (root) => {
      requireNoUnfinishedRestore(root);
      requireStoreIn(root);
    });
  return DataDirectory.claim(config.dataDir, (root) => {
    forgetChecks(root);
    if (isUnfinished(root, config.keyringFile)) rmSync(join(root, 'store', DATA_FILE));
    requireNoUnfinishedRestore(root);
    rmSync(join(root, 'store', RESTORING_FILE), { force: true }); // a restore leaves this file; next to a complete store it has no meaning
    if (!config.newStore) requireExpectedStore(root, config.keyringFile);
  });
}

export interface HostMakerOptions extends ProcessContext {
  /** The folder of its sockets. */
  readonly runDir: string;
  readonly metrics?: ServerMetrics;
  /** Whether the checks of confinement are kept in the data directory: by the process that confines kernels on this machine. */
  readonly keepsChecks?: boolean;
}

/** Returns the function that makes supervisors of kernel hosts. A host has loaded the usual libraries, or marimo alone. */
export function hostMaker({ config, log, directory, runDir, metrics, keepsChecks }: HostMakerOptions) {
  const shares = new ProcessorShares();
  return (preload: boolean, parts: HostParts = {}): KernelHost =>
    new KernelHost({
      shares,
      ...(metrics && { metrics }),
      python: config.python,
      runDir,
      preload,
      log,
      hiddenPaths: [directory.root, config.keyringFile, resolve(CONFIG_FILE)],
      readPaths: config.kernelReadPaths,
      writePaths: config.kernelWritePaths,
      kernelNetwork: config.kernelNetwork,
      ...(config.kernelUid === undefined ? {} : { kernelUid: config.kernelUid }),
      confinement: config.kernelConfinement,
      limits: limitsOf(config),
      ...(keepsChecks && parts.proves && { onChecked: (checks) => keepChecks(directory.root, checks) }),
      ...parts,
    });
}

/** Resolves when a kernel has started, with how kernels are confined; rejects when this Python cannot run them. */
export async function startHost(host: KernelHost, log: Log): Promise<{ readonly confinement: string }> {
  const hello = await host.start();
  await host.proven();
  log.info({ ...hello }, 'kernels can be started');
  return { confinement: host.confinement ?? hello.confinement };
}
