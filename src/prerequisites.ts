/**
 * The prerequisites: what takes longest at start, so that it begins before the rest of the server is loaded. They are the
 * claim on the data directory and the Python process from which every kernel is forked. Every module that this file
 * imports delays that process.
 */
import { resolve } from 'node:path';
import { DataDirectory } from '#storage/data-directory.ts';
import { requireExpectedStore } from '#storage/store-place.ts';
import { CONFIG_FILE } from './config/file.ts';
import type { Config } from './config.ts';
import type { Log } from './core/log.ts';
import { KernelHost } from './kernel/kernel-host.ts';
import { limitsOf } from './kernel/limits.ts';
import { PlainHost } from './kernel/plain-host.ts';
import { ServerMetrics } from './metrics/server-metrics.ts';

export interface Prerequisites extends AsyncDisposable {
  /** What the whole server counts. */
  readonly metrics: ServerMetrics;
  readonly directory: DataDirectory;
  readonly host: KernelHost;
  /** Starts a host that has only marimo loaded, once. */
  readonly plainHost: PlainHost;
  /** Resolves when kernels can be started; rejects when this Python cannot run them. */
  readonly kernelsReady: Promise<{ readonly confinement: string }>;
}

/**
 * Rejects with an error of one line when another server has claimed the data directory, or when the store is missing that
 * must have been in it. Disposing is idempotent.
 */
export async function openPrerequisites(config: Config, log: Log): Promise<Prerequisites> {
  const directory = await DataDirectory.claim(config.dataDir, (root) => {
    if (!config.newStore) requireExpectedStore(root, config.keyringFile);
  });
  const metrics = new ServerMetrics();
  const makeHost = (preload: boolean) =>
    new KernelHost({
      metrics,
      python: config.python,
      runDir: directory.runPath,
      preload,
      log,
      hiddenPaths: [directory.root, config.keyringFile, resolve(CONFIG_FILE)],
      readPaths: config.kernelReadPaths,
      writePaths: config.kernelWritePaths,
      kernelNetwork: config.kernelNetwork,
      ...(config.kernelUid === undefined ? {} : { kernelUid: config.kernelUid }),
      confinement: config.kernelConfinement,
      limits: limitsOf(config),
    });
  const host = makeHost(config.preload);
  const plainHost = new PlainHost(() => makeHost(false));
  const kernelsReady = host.start().then((hello) => {
    log.info({ ...hello }, 'kernels can be started');
    return { confinement: host.confinement ?? hello.confinement };
  });
  kernelsReady.catch(() => {}); // it may fail before anything awaits it
  return {
    metrics,
    directory,
    host,
    plainHost,
    kernelsReady,
    async [Symbol.asyncDispose]() {
      await plainHost[Symbol.asyncDispose]();
      await host[Symbol.asyncDispose]();
      directory[Symbol.dispose]();
    },
  };
}
