/** The server as one process. */

import { unawaited } from '#src/base/async/unawaited.ts';
import type { Secret } from '#src/base/caller/secret.ts';
import type { Config } from '#src/base/config/config.ts';
import type { RootLog } from '#src/base/log/log.ts';
import { notifyServiceManager } from '#src/base/os/service-notice.ts';
import { awaitRequiredConfinement, openPrerequisites } from '../app/prerequisites.ts';
import { announce, sayWhereKernelsRun } from './announce.ts';
import { compileEarly } from './compile-early.ts';
import { drain } from './drain.ts';
import { watchMainThread } from './main-watch.ts';
import { holdLocalhost, protectMemory, warnOfLauncher, warnOfSharedAddresses } from './protect.ts';

/** The port of a URL that names none. */
const HTTP_PORT = 80;

export interface ServeOptions {
  readonly config: Config;
  readonly log: RootLog;
  /** The settings that other programs must not see. */
  readonly secrets: readonly Secret[];
  /** Ends this process. */
  readonly end: (code: number) => never;
  /** Ends this process with a line that gives the reason. */
  readonly fail: (message: string) => never;
}

/** Resolves when everything is ready. The process then serves until a signal drains it. Rejects when it cannot start. */
export async function serveAlone(options: ServeOptions): Promise<void> {
  const { config, log, secrets, end } = options;
  const startedAt = performance.now();
  const prerequisites = await openPrerequisites(config, log);
  await protectMemory(log);
  warnOfLauncher(log, secrets);
  warnOfSharedAddresses(log, config);
  const { createApp } = await import('../app.ts'); // loaded while Python starts, so that it costs no time
  await awaitRequiredConfinement(config, prerequisites.kernelsReady);
  const app = await createApp({
    config,
    log,
    prerequisites,
    onFatal: (error) => {
      logFatal(log, 'server', error);
      end(1);
    },
  });
  watchMainThread();
  const { warmedUp } = await import('./warm-up.ts');
  const warmed = warmedUp(app, { config, log, prerequisites, createApp });
  onSignals(['SIGTERM', 'SIGINT', 'SIGHUP'], options, (signal) =>
    drain({ app: warmed, log, subject: 'server', leavingMs: config.drainS * 1000 }, signal),
  );
  await holdLocalhost(log, config.host, Number(new URL(app.url).port || HTTP_PORT));
  announce({ url: app.url, config, bootstrapped: app.bootstrapped });
  compileEarly();
  const { confinement } = await app.kernelsReady;
  sayWhereKernelsRun(config, confinement);
  log.info({ url: app.url, ms: Math.round(performance.now() - startedAt) }, 'ready');
  unawaited(
    notifyServiceManager({ READY: 1, STATUS: `Serving on ${app.url}.` }),
    'serve-alone: the notice to the service manager',
  );
}

/** Logs that this process ends because a commit failed. */
export function logFatal(log: RootLog, subject: 'server' | 'worker', error: Error): void {
  log.fatal(
    { err: error },
    `${error.message} The ${subject} ends, because its memory has changes that are not on the disk. All changes that were acknowledged are on the disk.`,
  );
  log.flush();
}

/**
 * The first of these signals drains the server, and a second one ends the process at once. SIGHUP
 * comes when a terminal closes, or from a service manager that expects a reload. The exit status is
 * 0 unless data was lost.
 */
export function onSignals(
  signals: readonly NodeJS.Signals[],
  { log, end, fail }: Pick<ServeOptions, 'log' | 'end' | 'fail'>,
  stop: (signal: NodeJS.Signals) => Promise<boolean>,
): void {
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) end(signal === 'SIGINT' ? 130 : 143);
    isStopping = true;
    unawaited(
      notifyServiceManager({ STOPPING: 1, STATUS: 'Ending what runs.' }),
      'serve-alone: the notice to the service manager',
    );
    stop(signal).then(
      (isStored) => end(isStored ? 0 : 1),
      (error: unknown) => {
        log.flush();
        fail(`Stopping failed: ${error instanceof Error ? error.message : String(error)}`);
      },
    );
  };
  for (const signal of signals) process.on(signal, onSignal);
}
