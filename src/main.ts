/** The server process: it reads the settings, starts the server and drains it on a signal. Only this file ends it. */
import './core/begin.ts'; // first: before anything is opened
import { setTimeout as pause } from 'node:timers/promises';
import type { App } from './app.ts';
import { ConfigError, loadConfig } from './config.ts';
import { findExposingLauncher } from './core/launcher.ts';
import { openLog, type RootLog } from './core/log.ts';
import { Secret } from './core/secret.ts';
import { showSourcePlaces } from './core/source-places.ts';
import { becomeUndumpable } from './core/undumpable.ts';
import { openPrerequisites } from './prerequisites.ts';

/** How long a drain may take at most, without what is waited for before it, and for each session with a kernel in addition. */
const DRAIN_BASE_MS = 4_800;
const DRAIN_MS_PER_SESSION = 50;
/** How long a drain that takes too long waits for what is being written at that moment. */
const LAST_WRITE_MS = 1_000;

await main();

async function main(): Promise<void> {
  // Files of this process are readable by its user only, whatever umask it was started with.
  process.umask(0o077);
  showSourcePlaces();
  const { config } = load();
  const secrets = Object.values(config).filter((value): value is Secret => value instanceof Secret);
  const log = openLog({ level: config.logLevel, secrets });
  const startedAt = performance.now();
  try {
    const prerequisites = await openPrerequisites(config, log);
    const dumpableBecause = await becomeUndumpable();
    if (dumpableBecause !== undefined)
      log.warn({ because: dumpableBecause }, 'programs of the same user can read the memory of this server');
    const launcher = findExposingLauncher(secrets);
    if (launcher !== undefined)
      log.warn(
        { launcher },
        'programs of the same user can read the keys of this server in the environment of the process that started it: keep them in troupe.config.json, or start the server with `exec node src/setup/start.mjs`',
      );
    const { createApp } = await import('./app.ts'); // while Python starts
    const app = await createApp({
      config,
      log,
      prerequisites,
      onFatal: (error) => {
        log.fatal(
          { err: error },
          `${error.message} The server ends, because its memory is ahead of the disk; what it has acknowledged is stored.`,
        );
        log.flush();
        process.exit(1);
      },
    });
    drainOnSignal(app, log, config.drainS * 1000);
    announce(app, config.host);
    const { confinement } = await app.kernelsReady;
    say(`  kernels are confined ${confinement}`);
    log.info({ url: app.url, ms: Math.round(performance.now() - startedAt) }, 'ready');
  } catch (error) {
    log.flush();
    fail(error instanceof Error ? error.message : String(error));
  }
}

function load(): ReturnType<typeof loadConfig> {
  try {
    return loadConfig();
  } catch (error) {
    if (error instanceof ConfigError) return fail(error.message);
    throw error;
  }
}

/**
 * The first signal (SIGTERM, SIGINT or SIGHUP) drains the server; a second one ends the process at once, and so does the end of
 * the time that fits the number of sessions. The exit status is 0 unless something was lost.
 */
function drainOnSignal(app: App, log: RootLog, leavingMs: number): void {
  let draining = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (draining) process.exit(signal === 'SIGINT' ? 130 : 143);
    draining = true;
    const { sessions, runs, streams } = app.load();
    const deadlineMs = leavingMs + DRAIN_BASE_MS + sessions * DRAIN_MS_PER_SESSION;
    log.info({ signal, sessions, runs, streams, deadlineMs }, 'the server drains');
    const startedAt = performance.now();
    const end = (isStored: boolean, message: string): never => {
      const fields = { sessions, runs, ms: Math.round(performance.now() - startedAt) };
      if (isStored) log.info(fields, message);
      else
        log.error(
          fields,
          `${message}, and what the disk did not take is lost; nothing of it was acknowledged`,
        );
      log.flush();
      process.exit(isStored ? 0 : 1);
    };
    const giveUp = async () => {
      const stored = Promise.resolve(app.stored()).then(() => true);
      const isStored = await Promise.race([stored, pause(LAST_WRITE_MS, false)]);
      end(isStored, 'the server has stopped before all of its kernels');
    };
    setTimeout(() => void giveUp(), deadlineMs).unref();
    app[Symbol.asyncDispose]().then(
      () => end(true, 'the server has stopped'),
      (error: unknown) => {
        log.flush();
        fail(`Stopping failed: ${error instanceof Error ? error.message : String(error)}`);
      },
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  process.on('SIGHUP', onSignal); // a terminal that closes, or a service manager that expects a reload
}

/** Prints what a person needs to see at start to stderr, because standard output is the log. */
function announce({ url, bootstrapped }: App, host: string): void {
  say(`Troupe listens on ${url}`);
  if (bootstrapped.kind === 'generated') {
    say(`  workspace     ${bootstrapped.workspaceId}`);
    // What is not a terminal may be a log, which others read and which is kept.
    if (process.stderr.isTTY) say(`  access token  ${bootstrapped.token.reveal()} (shown this once)`);
    say(`  ${process.stderr.isTTY ? 'kept in       ' : 'access token  in '}${bootstrapped.file}`);
  } else if (bootstrapped.kind === 'existing' && bootstrapped.ignored) {
    say('  TROUPE_BOOTSTRAP_TOKEN is ignored: this data directory has its own credentials.');
  }
  if (host === '0.0.0.0' || host === '::') say('  It is reachable from other machines, without TLS.');
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function fail(message: string): never {
  process.stderr.write(`troupe: ${message}\n`);
  process.exit(1);
}
