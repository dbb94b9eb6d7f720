/**
 * What a start waits for longest, so that it begins before the rest of the server is even loaded: the claim on the data
 * directory, and the Python process that every kernel is forked from. What this file imports delays that process.
 */
import { resolve } from 'node:path';
import { DataDirectory } from '#storage/data-directory.ts';
import { CONFIG_FILE } from './config/file.ts';
import type { Config } from './config.ts';
import type { Log } from './core/log.ts';
import { KernelHost } from './kernel/kernel-host.ts';
import { limitsOf } from './kernel/limits.ts';

export interface Foundation extends AsyncDisposable {
  readonly directory: DataDirectory;
  readonly host: KernelHost;
  /** Resolves when kernels can be started; rejects when this Python cannot run them. */
  readonly kernelsReady: Promise<{ readonly confinement: string }>;
}

/** Throws one clear line when another server has the data directory. Closing it twice is closing it once. */
export async function layFoundation(config: Config, log: Log): Promise<Foundation> {
  const directory = await DataDirectory.claim(config.dataDir);
  const host = new KernelHost({
    python: config.python,
    runDir: directory.runPath,
    preload: config.preload,
    log,
    hiddenPaths: [directory.root, config.keyringFile, resolve(CONFIG_FILE)],
    readPaths: config.kernelReadPaths,
    writePaths: config.kernelWritePaths,
    kernelNetwork: config.kernelNetwork,
    ...(config.kernelUid === undefined ? {} : { kernelUid: config.kernelUid }),
    confinement: config.kernelConfinement,
    limits: limitsOf(config),
  });
  const kernelsReady = host.start().then((hello) => {
    log.info({ ...hello }, 'kernels can be started');
    return { confinement: host.confinement ?? hello.confinement };
  });
  kernelsReady.catch(() => {}); // it may fail before whoever waits for it is loaded
  return {
    directory,
    host,
    kernelsReady,
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
      directory[Symbol.dispose]();
    },
  };
}
